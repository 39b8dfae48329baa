"""One fetch: request a URL, receive the body into the store, describe it. The caller decides on retries."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

import httpx

from ingest_assets.core.endpoints import epoch_s
from ingest_assets.core.items import Blob
from ingest_assets.core.ports import BlobStore, Download
from ingest_assets.intake.fetch import sniffing
from ingest_assets.intake.fetch.addresses import checked_url, shown
from ingest_assets.intake.fetch.decoding import ACCEPTED, decoded, is_plain
from ingest_assets.intake.fetch.errors import BodyCutOff, BodyTooLarge, FetchError, StoreUnwritable
from ingest_assets.intake.fetch.exchange import Exchange
from ingest_assets.intake.fetch.hosts import Hosts
from ingest_assets.intake.fetch.network import Clock, Deadline, Network
from ingest_assets.settings.intake import FetchOptions

MEBIBYTE = 1024 * 1024
_WHOLE = (200, 203)  # a 203 is a 200 changed by a proxy
# The file has changed, or is shorter than the part received: request it from the start.
_WRONG_RANGE = (206, 416)
_STRONG_AFTER_S = 60.0  # RFC 9110, 8.8.2.2: a change within the same second would go unnoticed


@dataclass(frozen=True, slots=True)
class Validators:
    """Validators of a document fetched before, for a conditional request."""

    etag: str | None = None
    last_modified: str | None = None
    content_hash: str | None = None

    def as_request(self) -> dict[str, str]:
        """Return the headers of a conditional request; empty without validators."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value and _is_sendable(value)}


def _is_sendable(value: str) -> bool:
    return value.isascii() and value.isprintable()


def resume_note(headers: httpx.Headers) -> dict[str, str] | None:
    """Return the validator with which a broken download can resume, or None if the server sent none.

    Only strong validators are used: a weak one could join parts of different files.
    """
    etag = headers.get("etag", "").strip()
    if etag.startswith('"') and _is_sendable(etag):
        return {"if_range": etag}
    modified, dated = headers.get("last-modified", ""), headers.get("date", "")
    changed_s, now_s = epoch_s(modified), epoch_s(dated)
    if changed_s is None or now_s is None or now_s - changed_s < _STRONG_AFTER_S:
        return None
    return {"if_range": modified.strip()}


def content_range(headers: httpx.Headers) -> tuple[int, int, int | None] | None:
    """Return the first and last byte of a 206 with a single range, and the total size if it is given."""
    pattern = r"\s*bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)\s*"
    match = re.fullmatch(pattern, headers.get("content-range", ""))
    if match is None:
        return None
    return int(match[1]), int(match[2]), None if match[3] == "*" else int(match[3])


def declared_type(headers: httpx.Headers) -> tuple[str | None, str | None]:
    """Return media type and charset of `Content-Type`, which are only hints."""
    header = _parsed("content-type", headers)
    charset = header.get_content_charset()
    return (header.get_content_type() if "content-type" in headers else None), charset


def suggested_name(headers: httpx.Headers) -> str | None:
    """Return the file name of `Content-Disposition`; only its suffix is used."""
    return _parsed("content-disposition", headers).get_filename()


def _parsed(name: str, headers: Mapping[str, str]) -> Message:
    message = Message()
    message[name] = " ".join(headers.get(name, "").split())
    return message


@dataclass(frozen=True, slots=True)
class Fetched:
    """A received document. The query of `final_url` can contain a signature."""

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
    """The document has not changed since the last fetch (304); nothing was received."""

    final_url: str
    etag: str | None
    last_modified: str | None


class Fetcher:
    """Fetches into a store. Thread-safe; use one per process, so that all fetches share the state of hosts.

    `sniff` detects the media type by a name and the first bytes: `parsing.media.media_type`.
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
        """Make one attempt, within `max_seconds` if that is less than the options allow; raise `FetchError`.

        `on_bytes` is called for every piece. An exception in it ends the fetch; received bytes are kept.
        """
        start = checked_url(url)
        limit_s = min(self._options.total_timeout_s, float("inf") if max_seconds is None else max_seconds)
        deadline = Deadline(limit_s, shown(start), self._clock)
        exchange = Exchange(self._options, self._hosts, self._network, self._clock, deadline)
        try:
            with self._blobs.download(str(start)) as download:
                try:
                    fetched = self._attempt(exchange, start, known, download, on_bytes)
                except FetchError as error:
                    if not error.retryable:
                        download.restart(None)  # delete it: no further attempt will continue it
                    raise
        except FetchError as error:
            # Without a request (the host is paused or refused) there is no result to count.
            if error.is_host_failure:
                self._hosts.failed(exchange.host)
            elif exchange.has_answer:
                self._hosts.answered(exchange.host)
            raise
        except OSError as error:  # network errors are already FetchErrors, so this is the disk
            raise StoreUnwritable(
                f"{shown(start)} could not be stored ({error.strerror}); check free space and permissions.",
                detail={"url": shown(start)},
            ) from error
        self._hosts.answered(exchange.host)
        return fetched

    def _attempt(
        self,
        exchange: Exchange,
        url: httpx.URL,
        known: Validators | None,
        download: Download,
        on_bytes: Callable[[int], None],
    ) -> Fetched | NotModified:
        if download.size_bytes:
            # Ranges count encoded bytes, so a download is resumed without compression.
            resuming = {
                "Accept-Encoding": "identity",
                "Range": f"bytes={download.size_bytes}-",
                "If-Range": download.note.get("if_range", ""),
            }
            with exchange.answer(url, resuming) as response:
                if response.status_code in _WHOLE or _is_continuation(response, download):
                    return self._receive(exchange, response, download, on_bytes)
                if response.status_code not in _WRONG_RANGE:
                    raise exchange.refusal(response)
            download.restart(None)
        condition = known.as_request() if known is not None else {}
        # If the stored bytes are missing, a 304 would not help.
        if known is not None and known.content_hash and self._blobs.find(known.content_hash) is None:
            condition = {}
        with exchange.answer(url, {"Accept-Encoding": ACCEPTED, **condition}) as response:
            if response.status_code in _WHOLE:
                return self._receive(exchange, response, download, on_bytes)
            if response.status_code == 304 and known is not None and condition:
                return NotModified(
                    str(response.url),
                    response.headers.get("etag") or known.etag,
                    response.headers.get("last-modified") or known.last_modified,
                )
            raise exchange.refusal(response)

    def _receive(
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
        length = response.headers.get("content-length", "").strip()
        coming_bytes = int(length) if re.fullmatch(r"\d{1,18}", length, re.ASCII) else 0
        self._require_size(response, resumed_from_bytes + coming_bytes)
        wire = self._read_wire(exchange, response, resumed_from_bytes, on_bytes)
        for piece in decoded(wire, encoding, shown(response.url)):
            self._require_size(response, download.size_bytes + len(piece))
            download.write(piece)
        _, _, total = content_range(response.headers) or (0, 0, None)
        if response.status_code == 206 and total is not None and total != download.size_bytes:
            # The range itself may have been shorter than the document.
            url = shown(response.url)
            raise BodyCutOff(f"{url} sent {download.size_bytes} of {total} bytes.", detail={"url": url})
        return self._described(response, download.finish(), resumed_from_bytes)

    def _read_wire(
        self, exchange: Exchange, response: httpx.Response, offset: int, on_bytes: Callable[[int], None]
    ) -> Iterator[bytes]:
        """Yield the body as received. Its size is limited too: compressed data can expand to nothing."""
        received = offset
        pieces = response.iter_raw()
        while True:
            with exchange.explained(response.url, is_body=True):
                piece = next(pieces, None)
            if piece is None:
                return
            received += len(piece)
            self._require_size(response, received)
            on_bytes(len(piece))
            yield piece

    def _require_size(self, response: httpx.Response, size_bytes: int) -> None:
        if size_bytes > self._options.max_mebibytes * MEBIBYTE:
            url = shown(response.url)
            raise BodyTooLarge(
                f"{url} is larger than the {self._options.max_mebibytes} MiB allowed; "
                "remove it, or raise fetch.max_mebibytes.",
                detail={"url": url, "limit_bytes": self._options.max_mebibytes * MEBIBYTE},
            )

    def _described(self, response: httpx.Response, blob: Blob, resumed_from_bytes: int) -> Fetched:
        with blob.path.open("rb") as stream:
            head = stream.read(sniffing.HEAD_BYTES)
        claimed, claimed_charset = declared_type(response.headers)
        names = (response.url.path, suggested_name(response.headers))
        kind = sniffing.media_type(head, names, claimed, self._sniff)
        is_text = sniffing.is_text(kind)
        return Fetched(
            path=blob.path,
            content_hash=blob.content_hash,
            size_bytes=blob.size_bytes,
            media_type=kind,
            charset=sniffing.charset(blob.path, head, claimed_charset) if is_text else None,
            final_url=str(response.url),
            etag=response.headers.get("etag"),
            last_modified=response.headers.get("last-modified"),
            declared_type=claimed,
            resumed_from_bytes=resumed_from_bytes,
            is_new=blob.is_new,
        )


def _is_continuation(response: httpx.Response, download: Download) -> bool:
    """True if the body continues the download. Compares ETags, since a server can ignore If-Range."""
    if response.status_code != 206 or not is_plain(response.headers.get("content-encoding", "")):
        return False
    etag, before = response.headers.get("etag"), download.note.get("if_range", "")
    is_same = etag is None or not before.startswith('"') or etag.strip() == before
    first, last, _ = content_range(response.headers) or (-1, -1, None)
    return is_same and first == download.size_bytes <= last
