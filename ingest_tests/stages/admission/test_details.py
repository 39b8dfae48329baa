"""Details from a document's text and its address."""

from dataclasses import replace

import pytest

from ingest_assets.stages.admission.document_text import Block, DocumentText
from ingest_assets.stages.admission.facts import details_of, modified_day

_READING = DocumentText(
    (Block("Minutes"), Block("Date: 2019-03-12"), Block("Present: Smith, Jones.")),
    title="Minutes",
    mime="text/html",
    address="https://www.Example.org:8443/minutes.html",
    source="queue",
    last_modified="Wed, 21 Oct 2015 07:28:00 GMT",
)


def test_details_of_a_fetched_page():
    """Title, address, domain, type, source, language and both dates."""
    details = details_of(_READING, "en")

    assert (details.title, details.mime, details.source, details.language) == (
        "Minutes",
        "text/html",
        "queue",
        "en",
    )
    assert (details.url, details.domain) == (_READING.address, "example.org")
    assert (details.published, details.modified) == ("2019-03-12", "2015-10-21")


def test_unknown_details_of_a_file_are_none():
    """There is no guess."""
    details = details_of(DocumentText((Block("Text"),), address="file:///data/notes.txt"), "und")

    assert (details.url, details.domain, details.published, details.modified) == (None, None, None, None)


@pytest.mark.parametrize(
    ("address", "day"),
    [
        ("https://news.org/2019/03/12/bridge.html", "2019-03-12"),
        ("https://news.org/2019/3/2/bridge", "2019-03-02"),
        ("file:///minutes/2019-03-12 council.pdf", "2019-03-12"),
        ("https://news.org/2019/02/30/bridge.html", None),
        ("https://news.org/12019/03/12", None),
        ("https://shop.org/item/20190312", None),
    ],
)
def test_the_day_in_an_address_is_read(address: str, day: str | None):
    """It must be complete and possible; article numbers are not dates."""
    assert details_of(replace(_READING, blocks=(), address=address), "en").published == day


@pytest.mark.parametrize(
    ("stated", "day"),
    [
        ("Wed, 21 Oct 2015 23:30:00 -0500", "2015-10-22"),
        ("2024-05-17T10:00:00+00:00", "2024-05-17"),
        ("2024-05-17", "2024-05-17"),
        ("yesterday", None),
        ("", None),
        (None, None),
        ("Mon, 99 Foo 0000 99:99:99 GMT", None),
    ],
)
def test_the_servers_date_becomes_a_day(stated: str | None, day: str | None):
    """In UTC; None if it is not a date."""
    assert modified_day(stated) == day


def test_an_invalid_address_has_no_domain():
    """The address is stored as it is, and nothing fails."""
    details = details_of(replace(_READING, address="http://[bad/2019"), "en")

    assert (details.url, details.domain) == ("http://[bad/2019", None)
