"""Invalid redirects; those to private addresses are in `test_refusals.py`."""

import pytest

from ingest_tests.intake.fetch.conftest import Desk
from ingest_tests.intake.fetch.site import Site


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://public.example/x", "gopher://x/", "javascript:x", "data:,x"]
)
def test_a_redirect_to_another_scheme_is_refused(target: str, site: Site, desk: Desk):
    """http and https only, at every hop."""
    error = desk.failure(site.page("/a.pdf", lambda v: v.reply(302, location=target)))

    assert error.code in ("E_FETCH_URL", "E_FETCH_REDIRECT")
    assert not error.retryable
    assert "only http and https" in str(error) or "invalid URL" in str(error)


def test_a_redirect_with_credentials_is_refused(site: Site, desk: Desk):
    """As in a URL of the user."""
    error = desk.failure(site.page("/a", lambda v: v.reply(302, location=f"http://u:s3cret@{site.port}/")))

    assert error.code == "E_FETCH_URL"
    assert "s3cret" not in str(error)


@pytest.mark.parametrize("location", ["http://[broken/", "http://a b/", "http://\x7f/"])
def test_a_redirect_to_an_invalid_url_is_refused(location: str, site: Site, desk: Desk):
    """Whatever the server sends."""
    error = desk.failure(site.page("/a", lambda v: v.reply(302, location=location)))

    assert error.code in ("E_FETCH_REDIRECT", "E_FETCH_URL")
    assert not error.retryable


def test_a_redirect_without_a_target_is_refused(site: Site, desk: Desk):
    """302 without a Location header."""
    assert desk.failure(site.page("/a", lambda v: v.reply(302))).code == "E_FETCH_REDIRECT"


def test_redirects_in_a_circle_end_at_the_limit(site: Site, desk: Desk):
    """The limit is the setting's, and the message names it."""
    site.page("/a", lambda v: v.reply(302, location="/b"))
    site.page("/b", lambda v: v.reply(302, location="/a"))

    error = desk.failure(site.url("/a"), max_redirects=4)

    assert (error.code, error.category, error.retryable) == ("E_FETCH_REDIRECT", "provider", False)
    assert "limit 4" in str(error)
    assert len(site.visits) == 5
