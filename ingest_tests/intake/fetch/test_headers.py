"""Headers are not trusted."""

import httpx
import pytest

from ingest_assets.intake.fetch.fetch import Validators, declared_type, suggested_name


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("text/html; charset=UTF-8", ("text/html", "utf-8")),
        ('text/html; charset="latin1"', ("text/html", "latin1")),
        ("application/pdf", ("application/pdf", None)),
        ("nonsense", ("text/plain", None)),
    ],
)
def test_a_content_type_is_a_hint(given: str, expected: tuple[str, str | None]):
    """Parsed by the rules of mail headers."""
    assert declared_type(httpx.Headers({"content-type": given})) == expected
    assert declared_type(httpx.Headers()) == (None, None)


def test_a_file_name_can_be_suggested():
    """For URLs without one."""
    headers = httpx.Headers({"content-disposition": "attachment; filename*=UTF-8''m%C3%BC.csv"})

    assert suggested_name(headers) == "mü.csv"
    assert suggested_name(httpx.Headers()) is None


def test_only_validators_that_can_be_sent_are_sent():
    """A stored line break must not start another header."""
    assert Validators('"a"', "then").as_request() == {"If-None-Match": '"a"', "If-Modified-Since": "then"}
    assert Validators('"a"\r\nX: y', "ü").as_request() == {}
