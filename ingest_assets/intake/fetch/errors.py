"""What can go wrong with one fetch. Status codes and exceptions map to types, never to words in a message."""

from collections.abc import Mapping
from typing import ClassVar

from ingest_assets.core.errors import Category, ItemError


class FetchError(ItemError):
    """One fetch failed; `detail` holds the address without secrets, the status and when to come back."""

    category: Category = "io"
    code = "E_FETCH"
    is_host_trouble: ClassVar[bool] = False  # counts against the host's circuit breaker


class UrlRefused(FetchError):
    """Not an address that is fetched: another scheme, credentials inside, or no valid URL."""

    category = "input"
    code = "E_FETCH_URL"


class AddressRefused(FetchError):
    """The host is, or resolves to, an address that is not public; the settings decide about those."""

    category = "config"
    code = "E_FETCH_ADDRESS"


class NameUnknown(FetchError):
    """The host's name has no address now."""

    code = "E_FETCH_DNS"
    retryable = True
    is_host_trouble = True


class ConnectionFailed(FetchError):
    """No connection, or one that ended before the answer began."""

    code = "E_FETCH_CONNECTION"
    retryable = True
    is_host_trouble = True


class BodyCutOff(FetchError):
    """The body ended early; what came is kept for the next attempt where the server can resume."""

    code = "E_FETCH_CUT_OFF"
    retryable = True
    is_host_trouble = True


class FetchTimeout(FetchError):
    """Connecting, waiting for bytes, or the whole fetch took too long."""

    category = "timeout"
    code = "E_FETCH_TIMEOUT"
    retryable = True
    is_host_trouble = True


class CertificateRefused(FetchError):
    """The server's certificate is not valid for this host."""

    category = "provider"
    code = "E_FETCH_CERTIFICATE"


class ProtocolBroken(FetchError):
    """What the server sent is not HTTP, or is HTTP of unreasonable size."""

    category = "provider"
    code = "E_FETCH_PROTOCOL"


class EncodingRefused(FetchError):
    """The body has a content encoding that was not asked for, or is not what it claims."""

    category = "provider"
    code = "E_FETCH_ENCODING"


class RedirectRefused(FetchError):
    """Too many redirects, or one that leads nowhere."""

    category = "provider"
    code = "E_FETCH_REDIRECT"


class BodyTooLarge(FetchError):
    """The document is larger than the limit."""

    category = "input"
    code = "E_FETCH_TOO_LARGE"


class BombRefused(FetchError):
    """A compressed body that expands out of all proportion."""

    category = "input"
    code = "E_FETCH_BOMB"


class ServerUnavailable(FetchError):
    """The server says that it cannot answer now."""

    category = "provider"
    code = "E_FETCH_UNAVAILABLE"
    retryable = True
    is_host_trouble = True


class RateLimited(FetchError):
    """The server asks for fewer requests; it is well, so its circuit stays closed."""

    category = "provider"
    code = "E_FETCH_RATE_LIMITED"
    retryable = True


class AccessDenied(FetchError):
    """The server wants credentials, or does not want us."""

    category = "input"
    code = "E_FETCH_DENIED"


class NotFound(FetchError):
    """There is no such document, or no longer."""

    category = "input"
    code = "E_FETCH_NOT_FOUND"


class RequestRefused(FetchError):
    """The server does not accept this request, whenever it is made."""

    category = "input"
    code = "E_FETCH_REFUSED"


class UnexpectedStatus(FetchError):
    """A status this product has no rule for; it is not retried."""

    category = "unknown"
    code = "E_FETCH_STATUS"


class HostResting(FetchError):
    """No request was made: the host failed too often or asked to be left alone for a while."""

    category = "provider"
    code = "E_FETCH_HOST_RESTING"
    retryable = True


class StoreUnwritable(FetchError):
    """The bytes could not be written here: a full disk, or missing permissions."""

    code = "E_FETCH_STORE"
    retryable = True


STATUS_ERRORS: Mapping[int, type[FetchError]] = {
    400: RequestRefused,
    401: AccessDenied,
    403: AccessDenied,
    404: NotFound,
    405: RequestRefused,
    408: ServerUnavailable,
    410: NotFound,
    422: RequestRefused,
    425: ServerUnavailable,
    429: RateLimited,
    500: ServerUnavailable,
    502: ServerUnavailable,
    503: ServerUnavailable,
    504: ServerUnavailable,
}

ADVICE: Mapping[type[FetchError], str] = {
    RequestRefused: "correct the URL",
    AccessDenied: "ask the site for access, or remove the document",
    NotFound: "correct the URL, or remove the document",
    ServerUnavailable: "it is tried again later",
    RateLimited: "it is tried again later",
    UnexpectedStatus: "open the URL in a browser to see what it is",
}


def status_error(status: int, reason: str, url: str, retry_after_s: float | None) -> FetchError:
    """The error of a status that brings no document; `url` is as `shown` gives it."""
    kind = STATUS_ERRORS.get(status, UnexpectedStatus)
    wait = "" if retry_after_s is None else f" and asks to wait {retry_after_s:.0f} s"
    words = " ".join(f"{status} {reason}".split())
    return kind(
        f"{url} answered {words}{wait}; {ADVICE[kind]}.",
        detail={"url": url, "status": status, "retry_after_s": retry_after_s},
    )
