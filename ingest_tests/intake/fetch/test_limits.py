"""No server can exceed the limits on time, memory and disk of a fetch."""

import contextlib
import gzip
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from ingest_tests.intake.fetch.conftest import Desk, tried
from ingest_tests.intake.fetch.site import PDF, Site, Visit

MEBIBYTE = 1024 * 1024
BLOCK = bytes(MEBIBYTE)

FETCH_IN_A_SMALL_HOUSE = """
import json, resource, sys
from pathlib import Path
from ingest_assets.intake.fetch import Fetcher, FetchError
from ingest_assets.settings.intake import FetchOptions
from ingest_assets.parsing.media import media_type
from ingest_assets.storage.blobs import ContentStore
from ingest_assets.core.layout import Layout

def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

home, *urls = sys.argv[1:]
options = FetchOptions(allow_private=True, politeness_delay_s=0, max_mebibytes=50)
fetcher = Fetcher(ContentStore(Layout(Path(home))), options, media_type)
fetcher.fetch(urls[0])
before, received = peak_kib(), []
try:
    fetcher.fetch(urls[1], on_bytes=received.append)
    code = None
except FetchError as error:
    code = error.code
print(json.dumps({"code": code, "grown_kib": peak_kib() - before, "received": sum(received)}))
"""


def _apart(desk: Desk, *urls: str) -> dict[str, int | str]:
    """Fetch in another process, after a small document that loads the libraries."""
    done = subprocess.run(
        [sys.executable, "-c", FETCH_IN_A_SMALL_HOUSE, str(desk.home), *urls],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _flood(visit: Visit, mebibytes: int) -> None:
    """Send an endless body without a length."""
    visit.begin(200, etag='"flood"')
    with contextlib.suppress(OSError):
        for _ in range(mebibytes):
            visit.send(BLOCK)


def test_an_endless_body_stops_at_the_limit_and_memory_stays_flat(site: Site, desk: Desk):
    """10 GB against 50 MiB: received just past the limit, nothing kept, no memory used."""
    small = site.page("/small.pdf", lambda v: v.reply(body=PDF))
    flood = site.page("/flood.bin", lambda v: _flood(v, 10_000))

    result = _apart(desk, small, flood)

    assert result["code"] == "E_FETCH_TOO_LARGE"
    assert 49 * MEBIBYTE < int(result["received"]) <= 50 * MEBIBYTE
    assert int(result["grown_kib"]) < 8 * 1024
    assert len(desk.blobs()) == 1
    assert desk.partials() == []


def test_a_document_at_the_limit_takes_no_memory_either(site: Site, desk: Desk):
    """50 MiB, which are allowed."""
    small = site.page("/small.pdf", lambda v: v.reply(body=PDF))
    large = site.page("/large.bin", lambda v: _flood(v, 50))

    result = _apart(desk, small, large)

    assert (result["code"], result["received"]) == (None, 50 * MEBIBYTE)
    assert int(result["grown_kib"]) < 8 * 1024


def test_a_body_over_the_limit_leaves_nothing_to_continue(site: Site, desk: Desk):
    """The same bytes would be refused again."""
    error = desk.failure(site.page("/a", lambda v: _flood(v, 100)), max_mebibytes=1)

    assert (error.code, error.category, error.retryable) == ("E_FETCH_TOO_LARGE", "input", False)
    assert "larger than the 1 MiB allowed" in str(error)
    assert desk.blobs() == desk.partials() == []


def test_a_length_over_the_limit_is_refused_unread(site: Site, desk: Desk):
    """Without receiving the body."""
    sent = threading.Event()

    def page(visit: Visit) -> None:
        visit.begin(200, content_length=10 * 1024**3)
        visit.is_over.wait(5)
        sent.set()

    error = desk.failure(site.page("/a", page), idle_timeout_s=3)

    assert error.code == "E_FETCH_TOO_LARGE"
    assert not sent.is_set()


def test_a_gzip_bomb_is_refused(site: Site, desk: Desk):
    """A gibibyte of zeros in a mebibyte: stopped long before all is expanded."""
    bomb = gzip.compress(bytes(64 * MEBIBYTE)) * 16
    small = site.page("/small.pdf", lambda v: v.reply(body=PDF))
    url = site.page("/bomb", lambda v: v.reply(body=bomb, content_encoding="gzip"))

    result = _apart(desk, small, url)
    came, errors = tried(desk.fetcher(max_mebibytes=50), url)

    assert result["code"] == "E_FETCH_BOMB"
    assert int(result["grown_kib"]) < 8 * 1024
    assert came is None
    assert [(e.code, e.category, e.retryable) for e in errors] == [("E_FETCH_BOMB", "input", False)]
    assert errors[0].detail["expanded_bytes"] < 20 * MEBIBYTE
    assert desk.partials() == []


def test_the_size_limit_applies_after_decompression(site: Site, desk: Desk):
    """Compressed or not, the limit is that of the document."""
    body = gzip.compress(bytes(2 * MEBIBYTE))
    url = site.page("/a", lambda v: v.reply(body=body, content_encoding="gzip"))

    assert desk.failure(url, max_mebibytes=1).code == "E_FETCH_TOO_LARGE"
    assert desk.fetch(url, max_mebibytes=2).size_bytes == 2 * MEBIBYTE


def test_compressed_data_that_expands_to_nothing_is_limited(site: Site, desk: Desk):
    """Endless empty blocks: no byte comes out, so received bytes are counted."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_encoding="deflate")
        visit.send(b"\x78\x9c")
        with contextlib.suppress(OSError):
            while not visit.is_over.is_set():
                visit.send(b"\x00\x00\x00\xff\xff" * 10_000)

    assert desk.failure(site.page("/a", page), max_mebibytes=1).code == "E_FETCH_TOO_LARGE"


def _drip(start: bytes, piece: bytes) -> Callable[[Visit], None]:
    """A server that sends a few bytes now and then, without end."""

    def page(visit: Visit) -> None:
        with contextlib.suppress(OSError):
            visit.send(start)
            while not visit.is_over.wait(0.05):
                visit.send(piece)

    return page


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Header: 1\r\n"),
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    ],
    ids=["body", "headers", "patience"],
)
def test_an_endless_slow_response_ends_at_the_total_timeout(
    start: bytes, piece: bytes, site: Site, desk: Desk
):
    """Every byte is in time, but the body never ends."""
    url = site.page("/slow", _drip(start, piece))
    began = time.monotonic()

    came, errors = tried(desk.fetcher(idle_timeout_s=1, total_timeout_s=0.5), url, attempts=2)

    assert came is None
    assert [(e.code, e.category, e.retryable) for e in errors] == [("E_FETCH_TIMEOUT", "timeout", True)] * 2
    assert str(errors[0]).startswith(f"{url} was not complete after 0.5 s")
    assert time.monotonic() - began < 4


def test_a_server_that_stops_sending_times_out(site: Site, desk: Desk):
    """The idle timeout is shorter than the total one; received bytes are kept."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_length=len(PDF), etag='"one"')
        visit.send(PDF[:100])
        visit.is_over.wait(10)

    url = site.page("/silent", page)
    began = time.monotonic()
    error = desk.failure(url, idle_timeout_s=0.3)

    assert (error.code, error.category) == ("E_FETCH_TIMEOUT", "timeout")
    assert str(error) == f"{url} sent nothing for 0.3 s (fetch.idle_timeout_s)."
    assert time.monotonic() - began < 5
    assert len(desk.partials()) == 2


def test_the_caller_can_set_a_shorter_timeout(site: Site, desk: Desk):
    """An item's own deadline wins."""
    url = site.page("/slow", _drip(b"HTTP/1.1 200 OK\r\n\r\n", b"x"))
    began = time.monotonic()

    with pytest.raises(Exception, match=r"after 0\.3 s"):
        desk.fetcher().fetch(url, max_seconds=0.3)

    assert time.monotonic() - began < 5


@pytest.mark.parametrize("header", [b"X: " + b"a" * 400_000, b"X: 1\r\n" * 100_000])
def test_endless_headers_are_refused(header: bytes, site: Site, desk: Desk):
    """One long line, or many short ones."""

    def page(visit: Visit) -> None:
        with contextlib.suppress(OSError):
            visit.send(b"HTTP/1.1 200 OK\r\n" + header)
            visit.is_over.wait(5)

    error = desk.failure(site.page("/a", page))

    assert (error.code, error.category, error.retryable) == ("E_FETCH_PROTOCOL", "provider", False)


def test_a_response_that_is_not_http_is_refused(site: Site, desk: Desk):
    """Another service on that port."""

    def page(visit: Visit) -> None:
        visit.send(b"220 mail.example ESMTP\r\n\r\n")
        visit.is_over.wait(5)

    assert desk.failure(site.page("/a", page)).code == "E_FETCH_PROTOCOL"
