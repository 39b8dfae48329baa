"""Every kind of response has its error, category and message; transient errors can be retried."""

import hashlib

import pytest
from pydantic import ValidationError

from ingest_assets.intake.fetch import Fetched, NotModified, Validators
from ingest_assets.intake.fetch.errors import STATUS_ERRORS
from ingest_assets.settings.intake import FetchOptions
from ingest_tests.intake.fetch.conftest import Desk, tried
from ingest_tests.intake.fetch.site import PDF, Site, Visit

TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
PERMANENT = (400, 401, 403, 404, 405, 410, 422)
UNKNOWN = (204, 206, 304, 402, 406, 418, 451, 501, 505, 599)


def test_a_document_is_stored_under_its_hash(site: Site, desk: Desk):
    """Completely, with what the server sent about it."""
    url = site.page("/a.pdf", lambda v: v.reply(body=PDF, etag='"one"', last_modified="yesterday"))

    came = desk.fetch(url)

    assert came.content_hash == hashlib.sha256(PDF).hexdigest() == came.path.name
    assert came.path == desk.layout.blob(came.content_hash)
    assert came.path.read_bytes() == PDF
    assert (came.size_bytes, came.media_type, came.charset) == (len(PDF), "application/pdf", None)
    assert (came.final_url, came.etag, came.last_modified) == (url, '"one"', "yesterday")
    assert (came.is_new, came.resumed_from_bytes) == (True, 0)
    assert desk.partials() == []


def test_identical_bytes_are_stored_once(site: Site, desk: Desk):
    """Two URLs, one blob; the second fetch reports known bytes."""
    first = desk.fetch(site.page("/a", lambda v: v.reply(body=PDF)))
    written = first.path.stat().st_mtime_ns

    second = desk.fetch(site.page("/b", lambda v: v.reply(body=PDF)))

    assert second.path == first.path
    assert not second.is_new
    assert desk.blobs() == [first.path]
    assert first.path.stat().st_mtime_ns == written


def test_a_server_that_fails_twice_is_retried(site: Site, desk: Desk):
    """503 twice, then 200."""

    def page(visit: Visit) -> None:
        visit.reply(503) if visit.number < 3 else visit.reply(body=PDF)

    came, errors = tried(desk.fetcher(), url := site.page("/a.pdf", page))

    assert isinstance(came, Fetched)
    assert [(e.code, e.category, e.detail["status"]) for e in errors] == [
        ("E_FETCH_UNAVAILABLE", "provider", 503)
    ] * 2
    assert str(errors[0]) == f"{url} returned 503 Service Unavailable."


def test_retry_after_pauses_the_host(site: Site, desk: Desk):
    """429 with Retry-After: no request to that host until the time is over."""

    def page(visit: Visit) -> None:
        visit.reply(429, retry_after=7) if visit.number == 1 else visit.reply(body=PDF)

    url = site.page("/a.pdf", page)
    fetcher = desk.fetcher(clock=desk.hands.clock())

    _, errors = tried(fetcher, url, attempts=2)
    sent = site.count("/a.pdf")
    desk.hands.now_s += 7
    came, _ = tried(fetcher, url)

    assert [e.code for e in errors] == ["E_FETCH_RATE_LIMITED", "E_FETCH_HOST_RESTING"]
    assert [e.category for e in errors] == ["provider", "provider"]
    assert [e.detail["retry_after_s"] for e in errors] == [7, 7]
    assert "(Retry-After: 7 s)" in str(errors[0])
    assert "is paused until 2024-05-01 10:40:07 UTC" in str(errors[1])
    assert sent == 1
    assert isinstance(came, Fetched)


def test_a_missing_document_is_requested_once(site: Site, desk: Desk):
    """404 is final, and the message says what to do."""
    url = site.page("/gone.pdf", lambda v: v.reply(404, b"<html>nope</html>"))

    came, errors = tried(desk.fetcher(), url)

    assert came is None
    assert [(e.code, e.category, e.retryable) for e in errors] == [("E_FETCH_NOT_FOUND", "input", False)]
    assert str(errors[0]) == f"{url} returned 404 Not Found; correct the URL, or remove the document."
    assert site.count("/gone.pdf") == 1
    assert desk.blobs() == desk.partials() == []


@pytest.mark.parametrize("status", TRANSIENT + PERMANENT + UNKNOWN)
def test_a_status_decides_whether_it_is_retried(status: int, site: Site, desk: Desk):
    """Known transient statuses are, known permanent and unknown ones are not."""
    error = desk.failure(site.page("/", lambda v: v.reply(status)))

    assert error.retryable is (status in TRANSIENT)
    assert (error.category == "unknown") is (status in UNKNOWN)
    assert error.detail["status"] == status


def test_the_table_of_statuses_has_no_others():
    """Any other status is unknown."""
    assert set(STATUS_ERRORS) == set(TRANSIENT + PERMANENT)


def test_a_document_that_did_not_change_is_not_sent(site: Site, desk: Desk):
    """304, by ETag and by date."""

    def page(visit: Visit) -> None:
        knows = visit.headers.get("if-none-match") == '"one"'
        visit.reply(304, etag='"one"') if knows else visit.reply(body=PDF, etag='"one"', last_modified="then")

    url = site.page("/a.pdf", page)
    first = desk.fetch(url)

    came = desk.fetcher().fetch(url, Validators(first.etag, first.last_modified, first.content_hash))

    assert came == NotModified(url, '"one"', "then")
    assert site.visits[-1].headers["if-modified-since"] == "then"


def test_a_known_document_whose_bytes_are_lost_is_fetched_again(site: Site, desk: Desk):
    """ "Not modified" would not bring the bytes back."""

    def page(visit: Visit) -> None:
        visit.reply(304) if "if-none-match" in visit.headers else visit.reply(body=PDF, etag='"one"')

    url = site.page("/a.pdf", page)
    first = desk.fetch(url)
    first.path.unlink()

    came = desk.fetcher().fetch(url, Validators(first.etag, None, first.content_hash))

    assert isinstance(came, Fetched)
    assert came.path.read_bytes() == PDF


def test_redirects_are_followed_to_the_document(site: Site, desk: Desk):
    """Relative and absolute ones; the final URL is returned."""
    site.page("/a", lambda v: v.reply(301, location="b?x=1"))
    site.page("/b", lambda v: v.reply(307, location=site.url("/c.pdf#part")))
    site.page("/c.pdf", lambda v: v.reply(body=PDF))

    came = desk.fetch(site.url("/a"))

    assert came.final_url == site.url("/c.pdf")
    assert came.path.read_bytes() == PDF


def test_cookies_set_on_the_way_are_sent_on(site: Site, desk: Desk):
    """Some publishers redirect in circles without their cookie."""

    def page(visit: Visit) -> None:
        if "cookie" in visit.headers:
            visit.reply(body=PDF)
        else:
            visit.reply(302, location="/a.pdf", set_cookie="seen=1; Path=/")

    assert desk.fetch(site.page("/a.pdf", page)).size_bytes == len(PDF)


def test_the_user_agent_names_product_and_contact(site: Site, desk: Desk):
    """So that a site owner can reach the operator."""
    url = site.page("/a.pdf", lambda v: v.reply(body=PDF))

    desk.fetch(url, contact="https://example.org/bot")
    desk.fetch(url)
    desk.fetch(url, user_agent="mine/1")

    agents = [visit.headers["user-agent"] for visit in site.visits]
    assert agents[0].startswith("ingest-assets/")
    assert agents[0].endswith("(+https://example.org/bot)")
    assert "no contact" in agents[1]
    assert agents[2] == "mine/1"


def test_on_bytes_can_stop_a_fetch(site: Site, desk: Desk):
    """A worker that lost its lease must stop; received bytes are kept."""

    class LeaseLost(Exception):
        """An error of the test."""

    def stop(count: int) -> None:
        raise LeaseLost

    url = site.page("/a.pdf", lambda v: v.serve(PDF, '"one"'))

    with pytest.raises(LeaseLost):
        desk.fetcher().fetch(url, on_bytes=stop)

    assert desk.blobs() == []
    counted: list[int] = []
    desk.fetcher().fetch(url, on_bytes=counted.append)
    assert sum(counted) == len(PDF)


@pytest.mark.parametrize("text", ["a\nX-Forged: 1", "süß", " padded ", "\x00"])
def test_a_contact_that_is_not_a_valid_header_is_refused_by_the_settings(text: str):
    """Better there than at every request."""
    with pytest.raises(ValidationError):
        FetchOptions(contact=text)
    with pytest.raises(ValidationError):
        FetchOptions(user_agent=text)
