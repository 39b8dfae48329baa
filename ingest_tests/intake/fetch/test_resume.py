"""A broken download resumes if, and only if, the file has not changed."""

import json
import os
import random
from collections.abc import Callable

import pytest

from ingest_assets.intake.fetch import Fetched
from ingest_tests.intake.fetch.conftest import Desk, tried
from ingest_tests.intake.fetch.site import Site, Visit

BODY = b"%PDF-1.7\n" + random.Random(4).randbytes(300_000)
NEWER = b"%PDF-1.7\n" + random.Random(5).randbytes(300_000)
HALF = 150_000


def _cut_once(body: bytes, **headers: str) -> Callable[[Visit], None]:
    """Serve a file whose first response stops half way."""
    return lambda visit: visit.serve(body, '"one"', cut_at=HALF if visit.number == 1 else None)


def test_a_body_that_stops_half_way_resumes(site: Site, desk: Desk):
    """The second attempt requests only the rest, and the content is correct."""
    url = site.page("/a.pdf", _cut_once(BODY))

    came, errors = tried(desk.fetcher(), url)

    assert [(e.code, e.category) for e in errors] == [("E_FETCH_CUT_OFF", "io")]
    assert str(errors[0]) == f"{url}: the connection closed before the download was complete."
    assert isinstance(came, Fetched)
    assert came.path.read_bytes() == BODY
    assert came.resumed_from_bytes == HALF
    again = site.visits[1].headers
    assert (again["range"], again["if-range"]) == (f"bytes={HALF}-", '"one"')
    assert again["accept-encoding"] == "identity"
    assert desk.partials() == []


def test_another_process_resumes_too(site: Site, desk: Desk):
    """Nothing is held in memory."""
    url = site.page("/a.pdf", _cut_once(BODY))

    desk.failure(url)
    kept = desk.partials()
    came = desk.fetch(url)

    assert [path.suffix for path in kept] == [".json", ".part"]
    assert came.resumed_from_bytes == HALF
    assert came.path.read_bytes() == BODY


def test_a_server_without_ranges_sends_all_again(site: Site, desk: Desk):
    """200 instead of 206: the first half is dropped, not doubled."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_length=len(BODY), etag='"one"')
        visit.send(BODY[: HALF if visit.number == 1 else None])

    came, errors = tried(desk.fetcher(), site.page("/a.pdf", page))

    assert [e.code for e in errors] == ["E_FETCH_CUT_OFF"]
    assert isinstance(came, Fetched)
    assert came.path.read_bytes() == BODY
    assert came.resumed_from_bytes == 0


def test_a_changed_file_is_fetched_from_the_start(site: Site, desk: Desk):
    """Parts of different files must never be joined."""

    def page(visit: Visit) -> None:
        visit.serve(BODY, '"one"', HALF) if visit.number == 1 else visit.serve(NEWER, '"two"')

    came, _ = tried(desk.fetcher(), site.page("/a.pdf", page))

    assert isinstance(came, Fetched)
    assert came.path.read_bytes() == NEWER
    assert came.etag == '"two"'


def _ignores_if_range(visit: Visit) -> None:
    """Send the rest of the current file."""
    rest = NEWER[HALF:]
    where = f"bytes {HALF}-{len(NEWER) - 1}/{len(NEWER)}"
    visit.reply(206, rest, etag='"two"', content_range=where)


def _other_range(visit: Visit) -> None:
    where = f"bytes 0-{len(NEWER) - 1}/{len(NEWER)}"
    visit.reply(206, NEWER, etag='"one"', content_range=where)


@pytest.mark.parametrize(
    "second",
    [
        _ignores_if_range,
        _other_range,
        lambda v: v.reply(206, b"--x", content_type="multipart/byteranges; boundary=x"),
        lambda v: v.reply(206, NEWER[HALF:], content_range="bytes garbage"),
        lambda v: v.reply(416, content_range=f"bytes */{len(NEWER)}"),
    ],
    ids=["changed", "other range", "many ranges", "garbage", "416"],
)
def test_a_wrong_range_restarts_at_once(second: Callable[[Visit], None], site: Site, desk: Desk):
    """In the same attempt, with a plain request."""

    def page(visit: Visit) -> None:
        if visit.number == 1:
            visit.serve(BODY, '"one"', HALF)
        elif visit.number == 2:
            second(visit)
        else:
            visit.serve(NEWER, '"two"')

    came, errors = tried(desk.fetcher(), site.page("/a.pdf", page))

    assert len(errors) == 1
    assert isinstance(came, Fetched)
    assert came.path.read_bytes() == NEWER
    assert "range" not in site.visits[2].headers


def test_an_error_while_resuming_keeps_the_half(site: Site, desk: Desk):
    """A 503 in between costs an attempt, not the bytes."""

    def page(visit: Visit) -> None:
        if visit.number == 2:
            visit.reply(503)
        else:
            visit.serve(BODY, '"one"', HALF if visit.number == 1 else None)

    came, errors = tried(desk.fetcher(), site.page("/a.pdf", page))

    assert [e.code for e in errors] == ["E_FETCH_CUT_OFF", "E_FETCH_UNAVAILABLE"]
    assert isinstance(came, Fetched)
    assert came.resumed_from_bytes == HALF


def test_a_range_shorter_than_the_rest_is_not_complete(site: Site, desk: Desk):
    """Some servers send a few mebibytes at a time."""

    def page(visit: Visit) -> None:
        if visit.number == 2:
            where = f"bytes {HALF}-{HALF + 9}/{len(BODY)}"
            visit.reply(206, BODY[HALF : HALF + 10], etag='"one"', content_range=where)
        else:
            visit.serve(BODY, '"one"', HALF if visit.number == 1 else None)

    came, errors = tried(desk.fetcher(), site.page("/a.pdf", page))

    assert [e.code for e in errors] == ["E_FETCH_CUT_OFF"] * 2
    assert isinstance(came, Fetched)
    assert came.resumed_from_bytes == HALF + 10
    assert came.path.read_bytes() == BODY


@pytest.mark.parametrize(
    ("headers", "is_kept"),
    [
        ({}, False),
        ({"etag": 'W/"weak"'}, False),
        ({"last_modified": "Wed, 01 May 2024 10:00:00 GMT"}, False),
        ({"last_modified": "Wed, 01 May 2024 10:00:00 GMT", "date": "Wed, 01 May 2024 10:00:30 GMT"}, False),
        ({"last_modified": "Wed, 01 May 2024 10:00:00 GMT", "date": "Wed, 01 May 2024 11:00:00 GMT"}, True),
        ({"etag": '"strong"'}, True),
        ({"etag": '"strong"', "content_encoding": "identity"}, True),
        ({"etag": '"strong"', "content_encoding": "deflate"}, False),
    ],
)
def test_only_downloads_with_a_strong_validator_are_kept(
    headers: dict[str, str], is_kept: bool, site: Site, desk: Desk
):
    """Without one it is unknown whether the other half belongs to this one."""

    def page(visit: Visit) -> None:
        visit.begin(200, content_length=len(BODY), **headers)
        visit.send(b"\x78\x9c" + BODY[:HALF])

    error = desk.failure(site.page("/a.pdf", page))

    assert error.code in ("E_FETCH_CUT_OFF", "E_FETCH_ENCODING")
    assert bool(desk.partials()) is is_kept


def test_a_damaged_half_is_not_continued(site: Site, desk: Desk):
    """Its bytes are hashed before they are trusted."""
    url = site.page("/a.pdf", _cut_once(BODY))
    desk.failure(url)
    (partial,) = desk.layout.partials.glob("*.part")
    with partial.open("r+b") as stream:
        stream.write(b"XXXX")

    came = desk.fetch(url)

    assert came.resumed_from_bytes == 0
    assert came.path.read_bytes() == BODY


def test_bytes_past_the_last_checkpoint_are_dropped(site: Site, desk: Desk):
    """After a power cut, unflushed bytes can be anything."""
    url = site.page("/a.pdf", _cut_once(BODY))
    desk.failure(url)
    (partial,) = desk.layout.partials.glob("*.part")
    with partial.open("ab") as stream:
        stream.write(os.urandom(5000))

    came = desk.fetch(url)

    assert came.resumed_from_bytes == HALF
    assert came.path.read_bytes() == BODY


@pytest.mark.parametrize(
    "note", ["", "[]", "{", '{"safe_bytes": 5}', '{"safe_bytes": -1, "sha256": "", "note": {}}']
)
def test_a_damaged_note_is_ignored(note: str, site: Site, desk: Desk):
    """The download starts at zero."""
    url = site.page("/a.pdf", _cut_once(BODY))
    desk.failure(url)
    (path,) = desk.layout.partials.glob("*.json")
    assert json.loads(path.read_text())["safe_bytes"] == HALF
    path.write_text(note)

    assert desk.fetch(url).resumed_from_bytes == 0
