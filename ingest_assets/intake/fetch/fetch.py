"""One fetch is one attempt: ask, receive into the store, say what came. Whoever calls decides on retries."""

import contextlib
import functools
import re
import ssl
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Protocol

import httpcore
import httpx

from ingest_assets.core.endpoints import epoch_s, retry_after_s
from ingest_assets.core.identity import installed_versions
from ingest_assets.core.items import Blob
from ingest_assets.core.ports import BlobStore, Download
from ingest_assets.intake.fetch import errors, sniffing
from ingest_assets.intake.fetch.addresses import checked_url, host_of, require_allowed_literal, shown
from ingest_assets.intake.fetch.errors import (
    BodyCutOff,
    BodyTooLarge,
    BombRefused,
    EncodingRefused,
    FetchError,
    StoreUnwritable,
)
from ingest_assets.intake.fetch.hosts import Hosts
from ingest_assets.intake.fetch.network import (
    CheckedDialler,
    Clock,
    Deadline,
    DirectTransport,
    Network,
    environment_proxy,
)
from ingest_assets.settings.intake import FetchOptions

# Requests of one fetch: redirects are followed by hand, so that every hop passes the same checks.


PRODUCT = "ingest-assets"
_ASKS_FOR_A_PAUSE = (429, 503)


def user_agent(options: FetchOptions) -> str:
    """Who is asking, and how to reach whoever runs it."""
    version = installed_versions(PRODUCT)[PRODUCT]
    contact = f"+{options.contact}" if options.contact else "automated; its operator left no contact"
    return options.user_agent or f"{PRODUCT}/{version} ({contact})"


@functools.lru_cache(maxsize=1)
def trusted_certificates() -> ssl.SSLContext:
    """certifi's authorities, or those of SSL_CERT_FILE and SSL_CERT_DIR; loading them takes a while."""
    return httpx.create_ssl_context(trust_env=True)


class Exchange:
    """The requests of one fetch, under one deadline. `host` is the last one asked."""

    def __init__(
        self, options: FetchOptions, hosts: Hosts, network: Network, clock: Clock, deadline: Deadline
    ) -> None:
        self.host = ""
        self.has_answer = False
        self._options = options
        self._hosts = hosts
        self._clock = clock
        self._visited: set[str] = set()
        self._dialler = CheckedDialler(deadline, network, allow_private=options.allow_private)

    @contextlib.contextmanager
    def answer(self, url: httpx.URL, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """The answer at the end of all redirects, with its body still on the wire."""
        proxy = environment_proxy(url) if self._options.use_environment_proxies else None
        with contextlib.closing(self._client(proxy)) as client:
            for _ in range(self._options.max_redirects + 1):
                if proxy is not None:
                    require_allowed_literal(url, allow_private=self._options.allow_private)
                with self.explained(url):
                    self._wait_for(url)
                with contextlib.closing(self._send(client, url, headers)) as response:
                    if not 300 <= response.status_code < 400 or response.status_code == 304:
                        yield response
                        return
                    url = self._next(url, response)
        raise errors.RedirectRefused(
            f"{shown(url)} is one redirect too many (limit {self._options.max_redirects}); "
            "use the final URL, or raise fetch.max_redirects.",
            detail={"url": shown(url)},
        )

    def refusal(self, response: httpx.Response) -> errors.FetchError:
        """The error of an answer without a document; a host that asks for a pause gets it."""
        wait_s = retry_after_s(response.headers.get("retry-after", ""), self._clock.epoch_s())
        if wait_s is not None and response.status_code in _ASKS_FOR_A_PAUSE:
            self._hosts.rest(self.host, wait_s)
        reason = httpx.codes.get_reason_phrase(response.status_code)
        return errors.status_error(response.status_code, reason, shown(response.url), wait_s)

    @contextlib.contextmanager
    def explained(self, url: httpx.URL, *, is_body: bool = False) -> Iterator[None]:
        """What the network raises, in this product's words."""
        where = {"url": shown(url)}
        try:
            yield
        except errors.FetchError as error:
            error.detail.setdefault("url", where["url"])
            raise
        except httpcore.TimeoutException as error:
            raise errors.FetchTimeout(_timeout_text(error, url, self._options), detail=where) from error
        except (httpcore.NetworkError, httpcore.ProxyError) as error:
            raise _network_error(error, url, is_body=is_body) from error
        except httpcore.ProtocolError as error:
            if not self._dialler.peer_closed:
                text = f"{shown(url)} does not speak HTTP as it should; tell the site's owner."
                raise errors.ProtocolBroken(text, detail=where) from error
            raise _network_error(error, url, is_body=is_body) from error

    def _client(self, proxy: httpx.Proxy | None) -> httpx.Client:
        """One per chain of redirects, so that cookies set on the way are sent on."""
        self._dialler.proxy_host = proxy.url.host if proxy else None
        options = self._options
        return httpx.Client(
            transport=DirectTransport(self._dialler, trusted_certificates(), proxy),
            trust_env=False,
            headers={"User-Agent": user_agent(options), "Accept": "*/*"},
            timeout=httpx.Timeout(options.idle_timeout_s, connect=options.connect_timeout_s),
        )

    def _wait_for(self, url: httpx.URL) -> None:
        """Politeness is between documents: the hops of one fetch on the same host wait once."""
        self.host, self.has_answer = host_of(url), False
        if self.host in self._visited:
            return
        self._visited.add(self.host)
        wait_s = self._hosts.take_turn(self.host, self._dialler.deadline.left_s())
        if wait_s > 0:
            self._clock.sleep(wait_s)

    def _send(self, client: httpx.Client, url: httpx.URL, headers: Mapping[str, str]) -> httpx.Response:
        request = client.build_request("GET", url, headers=dict(headers))
        with self.explained(url):
            try:
                response = client.send(request, stream=True)
            except (httpx.RemoteProtocolError, httpx.InvalidURL):  # httpx looks at redirects before we do
                raise errors.RedirectRefused(
                    f"{shown(url)} redirects to what is no web address; tell the site's owner.",
                    detail={"url": shown(url)},
                ) from None
        self.has_answer = True
        return response

    def _next(self, url: httpx.URL, response: httpx.Response) -> httpx.URL:
        location = response.headers.get("location", "")
        if not location:
            raise errors.RedirectRefused(
                f"{shown(url)} redirects ({response.status_code}) without saying where; "
                "tell the site's owner.",
                detail={"url": shown(url), "status": response.status_code},
            )
        return checked_url(location, base=url)


def _timeout_text(error: httpcore.TimeoutException, url: httpx.URL, options: FetchOptions) -> str:
    if isinstance(error, httpcore.ConnectTimeout):
        limit_s = options.connect_timeout_s
        return f"{shown(url)} accepted no connection within {limit_s:g} s; it is tried again."
    return f"{shown(url)} sent nothing for {options.idle_timeout_s:g} s; it is tried again."


def _network_error(error: Exception, url: httpx.URL, *, is_body: bool) -> errors.FetchError:
    detail = {"url": shown(url)}
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            reason = cause.verify_message.rstrip(".")
            text = f"{shown(url)} shows no valid certificate ({reason}); tell the site's owner."
            return errors.CertificateRefused(text, detail=detail)
    if is_body:
        return errors.BodyCutOff(f"{shown(url)} broke off; it is tried again.", detail=detail)
    text = f"{shown(url)} gave no answer ({_reason(error)}); it is tried again."
    return errors.ConnectionFailed(text, detail=detail)


def _reason(error: Exception) -> str:
    numbered = (c.strerror for c in _causes(error) if isinstance(c, OSError) and c.strerror)
    return next(numbered, "the connection was closed").lower()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# What an answer's headers say, read with distrust: a wrong header is a missing one.


_STRONG_AFTER_S = 60.0  # RFC 9110, 8.8.2.2: a change within the same second would go unseen


@dataclass(frozen=True, slots=True)
class Validators:
    """What is known of a document fetched before: with these a server can say that it did not change."""

    etag: str | None = None
    last_modified: str | None = None
    content_hash: str | None = None

    def as_request(self) -> dict[str, str]:
        """The headers of a conditional request; none when there is nothing to compare by."""
        wanted = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in wanted.items() if value and _is_sendable(value)}


def _is_sendable(value: str) -> bool:
    return value.isascii() and value.isprintable()


def resume_note(headers: httpx.Headers) -> dict[str, str] | None:
    """What must be the same for a broken download to go on, or None where the server gives no such thing.

    Only strong validators will do: with a weak one, two halves of different files could be joined.
    """
    etag = headers.get("etag", "").strip()
    if etag.startswith('"') and _is_sendable(etag):
        return {"if_range": etag}
    modified, dated = headers.get("last-modified", ""), headers.get("date", "")
    changed_s, now_s = epoch_s(modified), epoch_s(dated)
    if changed_s is None or now_s is None or now_s - changed_s < _STRONG_AFTER_S:
        return None
    return {"if_range": modified.strip()}


def continues_at(headers: httpx.Headers, offset: int) -> bool:
    """True when a 206 brings a single range that begins where the partial file ends."""
    found = re.fullmatch(
        r"\s*bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)\s*", headers.get("content-range", "")
    )
    return found is not None and int(found[1]) == offset and int(found[2]) >= offset


def total_bytes(headers: httpx.Headers) -> int | None:
    """The size of the whole document as a 206 tells it."""
    found = re.search(r"/(\d{1,18})\s*$", headers.get("content-range", ""))
    return int(found[1]) if found else None


def content_length(headers: httpx.Headers) -> int | None:
    """The size of this body on the wire, if it is told."""
    given = headers.get("content-length", "").strip()
    return int(given) if re.fullmatch(r"\d{1,18}", given, re.ASCII) else None


def declared_type(headers: httpx.Headers) -> tuple[str | None, str | None]:
    """Media type and charset of `Content-Type`: hints, no more."""
    header = _parsed("content-type", headers)
    charset = header.get_content_charset()
    return (header.get_content_type() if "content-type" in headers else None), charset


def suggested_name(headers: httpx.Headers) -> str | None:
    """The file name of `Content-Disposition`; only its suffix is ever used."""
    return _parsed("content-disposition", headers).get_filename()


def _parsed(name: str, headers: Mapping[str, str]) -> Message:
    message = Message()
    message[name] = " ".join(headers.get(name, "").split())
    return message


# Bodies in plain bytes, a small piece at a time, however much a compressed byte may stand for.


ACCEPTED = "gzip, deflate"
PIECE_BYTES = 64 * 1024
MAX_RATIO = 250
RATIO_COUNTS_FROM_BYTES = 8 * 1024 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = 16 + zlib.MAX_WBITS


class Inflater(Protocol):
    """What zlib's decompression objects offer."""

    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def is_plain(encoding: str) -> bool:
    """True when the bytes on the wire are the document's own."""
    return encoding.strip().lower() in ("", "identity")


def decoded(pieces: Iterable[bytes], encoding: str, url: str) -> Iterator[bytes]:
    """The document's bytes; refuses what was not asked for and what expands out of all proportion."""
    name = encoding.strip().lower()
    if is_plain(name):
        yield from pieces
    elif name in ("gzip", "x-gzip", "deflate"):
        yield from _inflated(pieces, name, url)
    else:
        raise EncodingRefused(
            f"{url} came in content encoding {name[:40]!r}, and only gzip and deflate were asked for; "
            "tell the site's owner.",
            detail={"url": url},
        )


def _inflated(pieces: Iterable[bytes], name: str, url: str) -> Iterator[bytes]:
    inflater: Inflater | None = None
    wire_bytes = plain_bytes = 0
    for piece in pieces:
        wire_bytes += len(piece)
        waiting, may_hold_more = piece, False
        while waiting or may_hold_more:
            if inflater is None or (inflater.eof and _starts_member(waiting, name)):
                inflater = _inflater(name, waiting)
            elif inflater.eof:
                break  # whatever follows the last member is padding
            plain = _step(inflater, waiting, url)
            plain_bytes += len(plain)
            _require_proportion(plain_bytes, wire_bytes, url)
            yield plain
            waiting = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            may_hold_more = len(plain) == PIECE_BYTES and not inflater.eof
    if inflater is not None and not inflater.eof:
        raise BodyCutOff(f"{url} ended within its {name} data; it is tried again.", detail={"url": url})


def _starts_member(waiting: bytes, name: str) -> bool:
    """A gzip body may be several, one after the other; the boundary may fall between any two pieces."""
    return name != "deflate" and waiting != b"" and _GZIP_MAGIC.startswith(waiting[:2])


def _inflater(name: str, first: bytes) -> Inflater:
    if name != "deflate":
        return zlib.decompressobj(_GZIP_WBITS)
    # "deflate" means zlib's format, and many servers send it without zlib's header.
    has_header = first[0] & 0x0F == 8 and (len(first) < 2 or int.from_bytes(first[:2], "big") % 31 == 0)
    return zlib.decompressobj(zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)


def _step(inflater: Inflater, waiting: bytes, url: str) -> bytes:
    try:
        return inflater.decompress(waiting, PIECE_BYTES)
    except zlib.error:
        raise EncodingRefused(
            f"{url} is not the compressed data it claims to be; tell the site's owner.", detail={"url": url}
        ) from None


def _require_proportion(plain_bytes: int, wire_bytes: int, url: str) -> None:
    if plain_bytes > RATIO_COUNTS_FROM_BYTES and plain_bytes > MAX_RATIO * wire_bytes:
        raise BombRefused(
            f"{url} expands more than {MAX_RATIO} times; documents do not, so it is refused.",
            detail={"url": url, "received_bytes": wire_bytes, "expanded_bytes": plain_bytes},
        )


MEBIBYTE = 1024 * 1024
_WHOLE = (200, 203)
_NOT_THAT_RANGE = (206, 416)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document that came, or came again. `final_url` may hold a signature of the site in its query."""

    path: Path
    content_hash: str
    size_bytes: int
    media_type: str
    charset: str | None
    final_url: str
    etag: str | None
    last_modified: str | None
    declared_type: str | None
    resumed_from_bytes: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class NotModified:
    """The server says that the document is still the one known; nothing was received."""

    final_url: str
    etag: str | None
    last_modified: str | None


class Fetcher:
    """Fetches into a store. Thread-safe; one per process, so that hosts are treated as one knows them.

    `sniff` tells the media type from a name and the first bytes: `parsing.media.media_type`.
    """

    def __init__(
        self,
        blobs: BlobStore,
        options: FetchOptions,
        sniff: sniffing.Sniffer,
        *,
        network: Network | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._blobs = blobs
        self._options = options
        self._sniff = sniff
        self._network = network or Network()
        self._clock = clock or Clock()
        self._hosts = Hosts(options, self._clock)

    def fetch(
        self,
        url: str,
        known: Validators | None = None,
        *,
        max_seconds: float | None = None,
        on_bytes: Callable[[int], None] = lambda _count: None,
    ) -> Fetched | NotModified:
        """One attempt, within `max_seconds` if that is less than the options allow; raises `FetchError`s.

        `on_bytes` hears of every piece received. What it raises ends the fetch, and what came is kept.
        """
        start = checked_url(url)
        limit_s = min(self._options.total_timeout_s, float("inf") if max_seconds is None else max_seconds)
        deadline = Deadline.after(limit_s, shown(start), self._clock)
        exchange = Exchange(self._options, self._hosts, self._network, self._clock, deadline)
        try:
            with self._blobs.download(str(start)) as download:
                came = self._kept_or_dropped(exchange, start, known, download, on_bytes)
        except FetchError as error:
            self._judge(exchange, error)
            raise
        except OSError as error:  # the network's errors are FetchErrors by now: this is the disk
            raise StoreUnwritable(
                f"{shown(start)} could not be stored ({error.strerror}); make room or check the permissions.",
                detail={"url": shown(start)},
            ) from error
        self._hosts.answered(exchange.host)
        return came

    def _judge(self, exchange: Exchange, error: FetchError) -> None:
        """A host that was not asked, because it rests or is refused, is neither well nor ill."""
        if error.is_host_trouble:
            self._hosts.failed(exchange.host)
        elif exchange.has_answer:
            self._hosts.answered(exchange.host)

    def _kept_or_dropped(
        self,
        exchange: Exchange,
        url: httpx.URL,
        known: Validators | None,
        download: Download,
        on_bytes: Callable[[int], None],
    ) -> Fetched | NotModified:
        """What no further attempt will continue need not lie about."""
        try:
            return self._attempt(exchange, url, known, download, on_bytes)
        except FetchError as error:
            if not error.retryable:
                download.restart(None)
            raise

    def _attempt(
        self,
        exchange: Exchange,
        url: httpx.URL,
        known: Validators | None,
        download: Download,
        on_bytes: Callable[[int], None],
    ) -> Fetched | NotModified:
        if download.size_bytes:
            with exchange.answer(url, _resuming(download)) as response:
                if response.status_code in _WHOLE or _goes_on(response, download):
                    return self._received(exchange, response, download, on_bytes)
                if response.status_code not in _NOT_THAT_RANGE:
                    raise exchange.refusal(response)
            download.restart(None)
        condition = self._condition(known)
        with exchange.answer(url, {"Accept-Encoding": ACCEPTED, **condition}) as response:
            if response.status_code in _WHOLE:
                return self._received(exchange, response, download, on_bytes)
            if response.status_code == 304 and known is not None and condition:
                etag, last_modified = _validators(response)
                return NotModified(
                    str(response.url), etag or known.etag, last_modified or known.last_modified
                )
            raise exchange.refusal(response)

    def _condition(self, known: Validators | None) -> dict[str, str]:
        """Without the bytes themselves, hearing that they did not change would not help."""
        if known is None or (known.content_hash and self._blobs.find(known.content_hash) is None):
            return {}
        return known.as_request()

    def _received(
        self,
        exchange: Exchange,
        response: httpx.Response,
        download: Download,
        on_bytes: Callable[[int], None],
    ) -> Fetched:
        encoding = response.headers.get("content-encoding", "")
        if response.status_code in _WHOLE:
            download.restart(resume_note(response.headers) if is_plain(encoding) else None)
        resumed_from_bytes = download.size_bytes
        self._require_fitting(response, download.size_bytes + (content_length(response.headers) or 0))
        wire = self._counted(exchange, response, resumed_from_bytes, on_bytes)
        for piece in decoded(wire, encoding, shown(response.url)):
            self._require_fitting(response, download.size_bytes + len(piece))
            download.write(piece)
        self._require_whole(response, download)
        return self._described(response, download.finish(), resumed_from_bytes)

    def _counted(
        self, exchange: Exchange, response: httpx.Response, offset: int, on_bytes: Callable[[int], None]
    ) -> Iterator[bytes]:
        """The body as it comes. Its own bytes count too: compressed data may stand for nothing at all."""
        received = offset
        pieces = response.iter_raw()
        while True:
            with exchange.explained(response.url, is_body=True):
                piece = next(pieces, None)
            if piece is None:
                return
            received += len(piece)
            self._require_fitting(response, received)
            on_bytes(len(piece))
            yield piece

    def _require_fitting(self, response: httpx.Response, size_bytes: int) -> None:
        if size_bytes > self._options.max_mebibytes * MEBIBYTE:
            url = shown(response.url)
            raise BodyTooLarge(
                f"{url} is larger than the {self._options.max_mebibytes} MiB allowed; "
                "leave it out or raise fetch.max_mebibytes.",
                detail={"url": url, "limit_bytes": self._options.max_mebibytes * MEBIBYTE},
            )

    def _require_whole(self, response: httpx.Response, download: Download) -> None:
        """A 206 may be cut short by its own range."""
        total = total_bytes(response.headers) if response.status_code == 206 else None
        if total is not None and total != download.size_bytes:
            url = shown(response.url)
            raise BodyCutOff(
                f"{url} sent {download.size_bytes} of {total} bytes; it is tried again.", detail={"url": url}
            )

    def _described(self, response: httpx.Response, blob: Blob, resumed_from_bytes: int) -> Fetched:
        with blob.path.open("rb") as stream:
            head = stream.read(sniffing.HEAD_BYTES)
        claimed, claimed_charset = declared_type(response.headers)
        names = (response.url.path, suggested_name(response.headers))
        kind = sniffing.media_type(head, names, claimed, self._sniff)
        is_text = sniffing.is_text(kind)
        etag, last_modified = _validators(response)
        return Fetched(
            path=blob.path,
            content_hash=blob.content_hash,
            size_bytes=blob.size_bytes,
            media_type=kind,
            charset=sniffing.charset(blob.path, head, claimed_charset) if is_text else None,
            final_url=str(response.url),
            etag=etag,
            last_modified=last_modified,
            declared_type=claimed,
            resumed_from_bytes=resumed_from_bytes,
            is_new=blob.is_new,
        )


def _resuming(download: Download) -> Mapping[str, str]:
    """Ranges count the bytes of the encoding, so resumed downloads are asked for as they are."""
    return {
        "Accept-Encoding": "identity",
        "Range": f"bytes={download.size_bytes}-",
        "If-Range": download.note.get("if_range", ""),
    }


def _goes_on(response: httpx.Response, download: Download) -> bool:
    """The server may ignore If-Range; then its validators tell whether the file is still the same."""
    if response.status_code != 206 or not is_plain(response.headers.get("content-encoding", "")):
        return False
    etag, before = response.headers.get("etag"), download.note.get("if_range", "")
    is_same = etag is None or not before.startswith('"') or etag.strip() == before
    return is_same and continues_at(response.headers, download.size_bytes)


def _validators(response: httpx.Response) -> tuple[str | None, str | None]:
    return response.headers.get("etag"), response.headers.get("last-modified")
