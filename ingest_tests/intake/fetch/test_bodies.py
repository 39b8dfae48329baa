"""Bodies come in every shape; what is stored is the document, whole."""

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
    """The last chunk is missing, so the document may be too; the rest is asked for."""

    def page(visit: Visit) -> None:
        _chunked(visit, PDF[:5000], ends=False) if visit.number == 1 else visit.serve(PDF, '"one"')

    came, errors = tried(desk.fetcher(), site.page("/a.pdf", page))

    assert [e.code for e in errors] == ["E_FETCH_CUT_OFF"]
    assert isinstance(came, Fetched)
    assert came.path.read_bytes() == PDF
    assert came.resumed_from_bytes == 5000


def test_a_body_without_any_length_ends_with_the_connection(site: Site, desk: Desk):
    """As in the first days of the web; whether it was all, nobody can tell."""

    def page(visit: Visit) -> None:
        visit.begin(200)
        visit.send(PDF)

    assert desk.fetch(site.page("/a.pdf", page)).path.read_bytes() == PDF


def test_a_length_that_promises_too_much_is_a_broken_body(site: Site, desk: Desk):
    """Half a document is none."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_length=len(PDF) + 1)
        visit.send(PDF)

    error = desk.failure(site.page("/a.pdf", page))

    assert (error.code, error.retryable) == ("E_FETCH_CUT_OFF", True)
    assert desk.blobs() == []


def test_a_length_that_promises_too_little_is_believed(site: Site, desk: Desk):
    """By the rules of HTTP the document ends there; what follows is not part of it."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_length=100)
        visit.send(PDF)

    assert desk.fetch(site.page("/a.pdf", page)).path.read_bytes() == PDF[:100]


@pytest.mark.parametrize("length", ["-5", "abc", "5, 6", "1e3", "9" * 30])
def test_a_length_that_is_none_stores_nothing_wrong(length: str, site: Site, desk: Desk):
    """Refused as no HTTP, or as too much."""
    error = desk.failure(site.page("/a.pdf", lambda v: (v.begin(200, content_length=length), v.send(PDF))))

    assert error.code in ("E_FETCH_PROTOCOL", "E_FETCH_CUT_OFF", "E_FETCH_TOO_LARGE")
    assert desk.blobs() == []


def test_an_empty_body_is_an_empty_document(site: Site, desk: Desk):
    """The next stage says what it thinks of that."""
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
    """gzip and deflate as they occur in the wild: several members, padding, no header."""
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
def test_it_does_not_matter_where_the_pieces_are_cut(name: str, body: bytes, step: int):
    """No piece that comes out is large, either."""
    pieces = list(decoded((body[i : i + step] for i in range(0, len(body), step)), name, "http://host/"))

    assert b"".join(pieces) == TEXT
    assert max(map(len, pieces)) <= PIECE_BYTES


@pytest.mark.parametrize("body", [gzip.compress(TEXT, mtime=0)[:-1], gzip.compress(TEXT, mtime=0)[:50]])
def test_compressed_data_that_ends_early_is_a_broken_body(body: bytes):
    """Also when the server closed the body as if it were whole."""
    with pytest.raises(BodyCutOff):
        list(decoded([body], "gzip", "http://host/"))


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "x" * 3000])
def test_an_encoding_that_was_not_asked_for_is_refused(encoding: str, site: Site, desk: Desk):
    """Stored as they are, such bytes would be no document."""
    url = site.page("/a", lambda v: v.reply(body=b"whatever", content_encoding=encoding))

    error = desk.failure(url)

    assert (error.code, error.category, error.retryable) == ("E_FETCH_ENCODING", "provider", False)
    assert len(str(error)) < 300
    assert desk.blobs() == desk.partials() == []


def test_data_that_only_claims_to_be_compressed_is_refused(site: Site, desk: Desk):
    """Content-Encoding: gzip over a plain file."""
    error = desk.failure(site.page("/a", lambda v: v.reply(body=PDF, content_encoding="gzip")))

    assert error.code == "E_FETCH_ENCODING"


def test_a_server_that_hangs_up_before_it_answers_is_tried_again(site: Site, desk: Desk):
    """A restart of the server looks like this."""

    def page(visit: Visit) -> None:
        if visit.number > 1:
            visit.reply(body=PDF)

    came, errors = tried(desk.fetcher(), site.page("/a.pdf", page))

    assert [(e.code, e.category) for e in errors] == [("E_FETCH_CONNECTION", "io")]
    assert isinstance(came, Fetched)


def test_a_port_that_nobody_listens_on_is_tried_again(desk: Desk):
    """Connection refused."""
    error = desk.failure("http://127.0.0.1:9/a.pdf")

    assert (error.code, error.category, error.retryable) == ("E_FETCH_CONNECTION", "io", True)
    assert str(error) == "http://127.0.0.1:9/a.pdf gave no answer (connection refused); it is tried again."


def test_a_full_disk_is_said_to_be_one(site: Site, desk: Desk):
    """Not the server's fault, and over when there is room again."""
    desk.layout.blobs.parent.mkdir(parents=True)
    desk.layout.blobs.write_text("a file where the folder should be")

    error = desk.failure(site.page("/a.pdf", lambda v: v.reply(body=PDF)))

    assert (error.code, error.category, error.retryable) == ("E_FETCH_STORE", "io", True)
    assert "could not be stored" in str(error)
