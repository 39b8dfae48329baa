"""One fetch is one attempt: ask, receive into the store, say what came. Whoever calls decides on retries."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from ingest_assets.intake.fetch import sniffing
from ingest_assets.intake.fetch.addresses import checked_url, shown
from ingest_assets.intake.fetch.clock import Clock, Deadline
from ingest_assets.intake.fetch.decoding import ACCEPTED, decoded, is_plain
from ingest_assets.intake.fetch.errors import BodyCutOff, BodyTooLarge, FetchError, StoreUnwritable
from ingest_assets.intake.fetch.exchange import Exchange
from ingest_assets.intake.fetch.headers import (
    Validators,
    content_length,
    continues_at,
    declared_type,
    resume_note,
    suggested_name,
    total_bytes,
)
from ingest_assets.intake.fetch.hosts import Hosts
from ingest_assets.intake.fetch.network import Network
from ingest_assets.model.items import Blob
from ingest_assets.model.options import FetchOptions
from ingest_assets.model.ports import BlobStore, Download

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
