"""Bodies in every encoding; the complete document is stored."""

import gzip
import zlib

import pytest

from ingest_assets.intake.fetch import Fetched
from ingest_assets.intake.fetch.decoding import PIECE_BYTES, decoded
from ingest_assets.intake.fetch.errors import BodyCutOff
from ingest_tests.intake.fetch.conftest import Desk, tried
from ingest_tests.intake.fetch.site import PDF, Site, Visit

TEXT = b"<html><body>" + b"Bees fly. " * 20_000 + b"</body></html>"


def _chunked(visit: Visit, body: bytes, *, ends: bool) -> None:
    visit.begin(200, transfer_encoding="chunked", etag='"one"')
    for start in range(0, len(body), 1000):
        piece = body[start : start + 1000]
        visit.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    if ends:
        visit.send(b"0\r\n\r\n")


def test_a_chunked_body_is_put_together(site: Site, desk: Desk):
    """No Content-Length is needed."""
    url = site.page("/a.pdf", lambda v: _chunked(v, PDF, ends=True))

    assert desk.fetch(url).path.read_bytes() == PDF


def test_a_chunked_body_that_is_cut_off_is_noticed(site: Site, desk: Desk):
    """The last chunk is missing, so the document may be incomplete; the rest is requested."""

    def page(visit: Visit) -> None:
        _chunked(visit, PDF[:5000], ends=False) if visit.number == 1 else visit.serve(PDF, '"one"')

    came, errors = tried(desk.fetcher(), site.page("/a.pdf", page))

    assert [e.code for e in errors] == ["E_FETCH_CUT_OFF"]
    assert isinstance(came, Fetched)
    assert came.path.read_bytes() == PDF
    assert came.resumed_from_bytes == 5000


def test_a_body_without_any_length_ends_with_the_connection(site: Site, desk: Desk):
    """As in HTTP/1.0; a missing part cannot be noticed."""

    def page(visit: Visit) -> None:
        visit.begin(200)
        visit.send(PDF)

    assert desk.fetch(site.page("/a.pdf", page)).path.read_bytes() == PDF


def test_a_body_shorter_than_its_length_is_cut_off(site: Site, desk: Desk):
    """A partial document is not stored."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_length=len(PDF) + 1)
        visit.send(PDF)

    error = desk.failure(site.page("/a.pdf", page))

    assert (error.code, error.retryable) == ("E_FETCH_CUT_OFF", True)
    assert desk.blobs() == []


def test_a_body_longer_than_its_length_is_truncated(site: Site, desk: Desk):
    """By the rules of HTTP the document ends there; the rest is not part of it."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_length=100)
        visit.send(PDF)

    assert desk.fetch(site.page("/a.pdf", page)).path.read_bytes() == PDF[:100]


@pytest.mark.parametrize("length", ["-5", "abc", "5, 6", "1e3", "9" * 30])
def test_an_invalid_length_stores_nothing_wrong(length: str, site: Site, desk: Desk):
    """Refused as invalid HTTP, or as too large."""
    error = desk.failure(site.page("/a.pdf", lambda v: (v.begin(200, content_length=length), v.send(PDF))))

    assert error.code in ("E_FETCH_PROTOCOL", "E_FETCH_CUT_OFF", "E_FETCH_TOO_LARGE")
    assert desk.blobs() == []


def test_an_empty_body_is_an_empty_document(site: Site, desk: Desk):
    """The next stage decides about it."""
    came = desk.fetch(site.page("/a.pdf", lambda v: v.reply()))

    assert (came.size_bytes, came.path.read_bytes()) == (0, b"")


ZLIB = zlib.compress(TEXT)
RAW = zlib.compress(TEXT)[2:-4]


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT)),
        ("GZip", gzip.compress(TEXT[:500]) + gzip.compress(TEXT[500:])),
        ("gzip", gzip.compress(TEXT) + b"\0" * 512),
        ("deflate", ZLIB),
        ("deflate", RAW),
        ("identity", TEXT),
        ("gzip", b""),
    ],
)
def test_a_compressed_body_is_stored_plain(encoding: str, body: bytes, site: Site, desk: Desk):
    """gzip and deflate as servers send them: several members, padding, no header."""
    url = site.page("/a", lambda v: v.reply(body=body, content_encoding=encoding))

    came = desk.fetch(url)

    assert came.path.read_bytes() == (TEXT if body else b"")
    assert site.visits[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("gzip", gzip.compress(TEXT[:70_000]) + gzip.compress(TEXT[70_000:])),
        ("deflate", ZLIB),
        ("deflate", RAW),
    ],
)
def test_pieces_can_be_split_anywhere(name: str, body: bytes, step: int):
    """And no decompressed piece is large."""
    pieces = list(decoded((body[i : i + step] for i in range(0, len(body), step)), name, "http://host/"))

    assert b"".join(pieces) == TEXT
    assert max(map(len, pieces)) <= PIECE_BYTES


@pytest.mark.parametrize("body", [gzip.compress(TEXT, mtime=0)[:-1], gzip.compress(TEXT, mtime=0)[:50]])
def test_compressed_data_that_ends_early_is_cut_off(body: bytes):
    """Also if the server closed the body correctly."""
    with pytest.raises(BodyCutOff):
        list(decoded([body], "gzip", "http://host/"))


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "x" * 3000])
def test_an_encoding_that_was_not_requested_is_refused(encoding: str, site: Site, desk: Desk):
    """The stored bytes would not be the document."""
    url = site.page("/a", lambda v: v.reply(body=b"whatever", content_encoding=encoding))

    error = desk.failure(url)

    assert (error.code, error.category, error.retryable) == ("E_FETCH_ENCODING", "provider", False)
    assert len(str(error)) < 300
    assert desk.blobs() == desk.partials() == []


def test_data_that_is_not_compressed_as_declared_is_refused(site: Site, desk: Desk):
    """Content-Encoding: gzip over a plain file."""
    error = desk.failure(site.page("/a", lambda v: v.reply(body=PDF, content_encoding="gzip")))

    assert error.code == "E_FETCH_ENCODING"


def test_a_server_that_hangs_up_before_it_responds_is_retried(site: Site, desk: Desk):
    """As during a restart of the server."""

    def page(visit: Visit) -> None:
        if visit.number > 1:
            visit.reply(body=PDF)

    came, errors = tried(desk.fetcher(), site.page("/a.pdf", page))

    assert [(e.code, e.category) for e in errors] == [("E_FETCH_CONNECTION", "io")]
    assert isinstance(came, Fetched)


def test_a_closed_port_is_retried(desk: Desk):
    """Connection refused."""
    error = desk.failure("http://127.0.0.1:9/a.pdf")

    assert (error.code, error.category, error.retryable) == ("E_FETCH_CONNECTION", "io", True)
    assert str(error) == "http://127.0.0.1:9/a.pdf did not respond (connection refused)."


def test_a_full_disk_is_a_store_error(site: Site, desk: Desk):
    """Not the server's fault, and retryable."""
    desk.layout.blobs.parent.mkdir(parents=True)
    desk.layout.blobs.write_text("a file where the folder should be")

    error = desk.failure(site.page("/a.pdf", lambda v: v.reply(body=PDF)))

    assert (error.code, error.category, error.retryable) == ("E_FETCH_STORE", "io", True)
    assert "could not be stored" in str(error)
