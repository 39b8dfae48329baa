"""Which documents are read in page ranges, and how these pages are stored until they are merged."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ingest_assets.core.errors import DocumentChanged
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.parsing.media import PDF
from ingest_assets.parsing.page_ranges import MIN_RANGE_PAGES
from ingest_assets.stages.base import ADOPTS
from ingest_assets.stages.doctags import (
    DoctagsStage,
    PageCounter,
    PageStore,
    RangeReader,
    large_pdfs,
    range_items,
)
from ingest_tests.parsing.pdf.papers import WIDTH, Sheet, paper

MIB = 1024 * 1024
PAGES = 2 * MIN_RANGE_PAGES
STAGE = DoctagsStage()
TWO = ItemContext(workers=2)


def _item(name: str, mebibytes: float, mime: str = PDF, **meta: object) -> WorkItem:
    return WorkItem(name, f"fingerprint of {name}", meta={"mime": mime, **meta}, cost_hint=mebibytes * MIB)


def _names(items: list[WorkItem]) -> list[str]:
    return [item.item_id for item in items]


def test_a_pdf_above_half_of_a_workers_share_is_large():
    """One worker would still read it when the others are idle; many PDFs of one size keep all busy."""
    small = [_item(f"small-{number}", 1) for number in range(10)]

    assert _names(large_pdfs([*small, _item("book", 40)], workers=2)) == ["book"]
    assert _names(large_pdfs([_item("alone", 3)], workers=4)) == ["alone"]
    assert large_pdfs(small, workers=2) == []
    assert len(large_pdfs([_item(str(number), 1) for number in range(3)], workers=2)) == 3


def test_documents_that_cannot_be_split_are_not_large():
    """One worker, another format, few pages, a document that only moved."""
    assert large_pdfs([_item("alone", 3)], workers=1) == []
    assert large_pdfs([_item("page", 3, "text/html")], workers=2) == []
    assert large_pdfs([_item("note", 0.05)], workers=2) == []
    assert large_pdfs([_item("moved", 3, **{ADOPTS: "rows"})], workers=2) == []


def _page(sheet: Sheet, number: int) -> None:
    sheet.text(60, 60, f"Stores of year {number}", "Times-Bold", 14)
    sheet.prose(60, 90, WIDTH - 120, 4, number)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> WorkItem:
    """A planned PDF with enough pages for two ranges."""
    from ingest_tests.stages.test_doctags import planned

    content = paper(*(partial(_page, number=number) for number in range(PAGES)))
    return planned(tmp_path_factory.mktemp("book") / "book.pdf", content)


def test_pages_that_were_read_ahead_make_the_same_row(book: WorkItem):
    """The document's worker merges them."""
    counted = PageCounter(STAGE)(book, TWO).counts["pages"]
    alone = STAGE.rows(book, TWO)
    ranges = range_items({book.item_id: counted}, [book], workers=2)

    for item in ranges:
        RangeReader(STAGE)(item, TWO)

    assert counted == PAGES
    assert len({item.item_id for item in ranges}) == 2
    assert PageStore(book).load().is_complete
    assert STAGE.rows(book, TWO) == alone


def test_a_stored_range_is_not_read_again_unless_forced(book: WorkItem):
    """The next run after a killed one uses the stored pages; a forced run does not."""
    first, _ = range_items({book.item_id: PAGES}, [book], workers=2)
    path = Path(RangeReader(STAGE)(first, TWO).outputs[0])
    path.write_bytes(b"stored before")

    RangeReader(STAGE)(first, TWO)
    assert path.read_bytes() == b"stored before"
    RangeReader(STAGE)(first, replace(TWO, force=True))
    assert path.read_bytes() != b"stored before"


def test_a_damaged_range_is_ignored(book: WorkItem):
    """Its pages are read with the document."""
    alone = STAGE.rows(book, TWO)
    first, _ = range_items({book.item_id: PAGES}, [book], workers=2)
    path = Path(RangeReader(STAGE)(first, TWO).outputs[0])
    path.write_bytes(path.read_bytes()[:100])

    assert STAGE.rows(book, TWO) == alone


def test_short_documents_and_uncounted_ones_are_not_split(book: WorkItem):
    """A document whose pages cannot be counted reports its error when it is read."""
    assert range_items({book.item_id: PAGES - 1}, [book], workers=2) == []
    assert range_items({}, [book], workers=2) == []


def test_pages_of_a_file_that_changed_since_the_plan_are_not_read(tmp_path: Path):
    """They would be merged with pages of the old file."""
    from ingest_tests.stages.test_doctags import planned

    item = planned(tmp_path / "book.pdf", paper(partial(_page, number=1)))
    first, _ = range_items({item.item_id: PAGES}, [item], workers=2)
    (tmp_path / "book.pdf").write_bytes(paper(partial(_page, number=2)))

    with pytest.raises(DocumentChanged):
        RangeReader(STAGE)(first, TWO)

    assert PageStore(item).load().numbers == frozenset()
