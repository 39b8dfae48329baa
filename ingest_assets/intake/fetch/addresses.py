"""Which URLs and network addresses can be fetched, and how to show a URL without its secrets."""

import contextlib
import ipaddress
import re
import unicodedata

import httpx

from ingest_assets.intake.fetch.errors import AddressRefused, UrlRefused

MAX_SHOWN_CHARS = 200  # a URL can have thousands, and a message is one line
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
# Not public either; their `is_global` differs between Python releases.
_SHARED = ipaddress.IPv4Network("100.64.0.0/10")
_RELAY = ipaddress.IPv4Network("192.88.99.0/24")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def checked_url(text: str, base: httpx.URL | None = None) -> httpx.URL:
    """Return the URL in canonical form, without a fragment; raise `UrlRefused` unless it is http or https."""
    try:
        url = httpx.URL(text.strip())
        url = (base.join(url) if base is not None else url).copy_with(fragment=None)
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise _refused(text, f"is not a valid URL ({_one_line(str(error))}); correct it") from None
    if url.scheme not in ("http", "https"):
        scheme = f"scheme {_one_line(url.scheme)}" if url.scheme else "no scheme"
        raise _refused(text, f"has {scheme}, but only http and https are fetched; correct the URL")
    if url.userinfo:
        raise _refused(text, "contains a user name or password; remove it")
    has_port = url.port is None or 0 < url.port < 65536
    if not has_port or not re.fullmatch(rb"[A-Za-z0-9._:-]{1,253}", url.raw_host):
        raise _refused(text, "has no valid host and port; correct the URL")
    return url.copy_with(port=None) if url.port == _DEFAULT_PORTS[url.scheme] else url


def _refused(text: str, why: str) -> UrlRefused:
    url = shown(text)
    return UrlRefused(f"{url or 'An empty URL'} {why}.", detail={"url": url})


def host_of(url: httpx.URL) -> str:
    """Return the key of limits per host: the host, with its port unless it is the default."""
    return url.netloc.decode("ascii")


def shown(url: str | httpx.URL) -> str:
    """Return the URL for messages and records: one line, no credentials, query names without values."""
    text = _one_line(str(url))
    text = re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*:)?(/*)[^/?#]*@", r"\1\2", text)
    address, _, query = text.partition("#")[0].partition("?")
    names = [part.partition("=")[0] + "=…" for part in query.split("&") if "=" in part]
    text = f"{address}?{'&'.join(names) or '…'}" if query else address
    return text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 1] + "…"


def _one_line(text: str) -> str:
    visible = (c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp"))
    return "".join(visible).strip()


_PRIVATE = ("private", "loopback", "link-local")  # allowed with `fetch.allow_private`


def require_allowed(host: str, address: str, *, allow_private: bool) -> None:
    """Raise `AddressRefused` for an address that is not public."""
    kind = _kind(ipaddress.ip_address(address.partition("%")[0]))  # without the interface of fe80::1%eth0
    if kind is None or (allow_private and kind in _PRIVATE):
        return
    where = host if host == address else f"{host} ({address})"
    advice = "; correct the URL"
    if kind in _PRIVATE:
        advice = "; set fetch.allow_private = true if you trust it"
    raise AddressRefused(f"{where} is a {kind} address{advice}.", detail={"host": host, "address": address})


def require_allowed_literal(url: httpx.URL, *, allow_private: bool) -> None:
    """Check a URL that goes through a proxy: an address is checked, a name is resolved by the proxy."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(url.host)
        require_allowed(url.host, url.host, allow_private=allow_private)


def _kind(address: Address) -> str | None:
    """Return why an address is not public, or None. An embedded IPv4 address counts as itself."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return _kind(inner)
    if address.is_unspecified:
        return "unspecified"
    if address.is_multicast:
        return "multicast"
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    if address.is_reserved:
        return "reserved"
    is_local = (
        address.is_site_local
        if isinstance(address, ipaddress.IPv6Address)
        else address in _SHARED or address in _RELAY
    )
    return "private" if is_local or not address.is_global else None


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address in a mapped, 6to4, NAT64 or IPv4-compatible address, or None."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    is_compatible = address in _COMPATIBLE and int(address) > 1  # :: and ::1 embed no address
    if address in _NAT64 or is_compatible:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
