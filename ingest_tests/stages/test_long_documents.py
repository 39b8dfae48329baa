"""Which documents are read by ranges of pages, and where their pages rest meanwhile."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ingest_assets.core.errors import DocumentChanged
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.parsing.media import PDF
from ingest_assets.parsing.page_ranges import SHORTEST
from ingest_assets.stages.base import ADOPTS
from ingest_assets.stages.doctags import (
    DoctagsStage,
    PageCounter,
    PageStore,
    RangeReader,
    long_suspects,
    range_items,
)
from ingest_tests.parsing.pdf.papers import WIDTH, Sheet, paper

MIB = 1024 * 1024
PAGES = 2 * SHORTEST
STAGE = DoctagsStage()
TWO = ItemContext(workers=2)


def _item(name: str, mebibytes: float, mime: str = PDF, **meta: object) -> WorkItem:
    return WorkItem(name, f"mark of {name}", meta={"mime": mime, **meta}, cost_hint=mebibytes * MIB)


def _names(items: list[WorkItem]) -> list[str]:
    return [item.item_id for item in items]


def test_a_document_that_is_most_of_a_workers_share_is_suspected():
    """The others are done while it is read; of many alike, none keeps anybody waiting."""
    small = [_item(f"small-{number}", 1) for number in range(10)]

    assert _names(long_suspects([*small, _item("book", 40)], workers=2)) == ["book"]
    assert _names(long_suspects([_item("alone", 3)], workers=4)) == ["alone"]
    assert long_suspects(small, workers=2) == []
    assert len(long_suspects([_item(str(number), 1) for number in range(3)], workers=2)) == 3


def test_what_cannot_be_shared_is_not_suspected():
    """One worker, another format, a few pages, a document that only moved."""
    assert long_suspects([_item("alone", 3)], workers=1) == []
    assert long_suspects([_item("page", 3, "text/html")], workers=2) == []
    assert long_suspects([_item("note", 0.05)], workers=2) == []
    assert long_suspects([_item("moved", 3, **{ADOPTS: "rows"})], workers=2) == []


def _page(sheet: Sheet, number: int) -> None:
    sheet.text(60, 60, f"Stores of year {number}", "Times-Bold", 14)
    sheet.prose(60, 90, WIDTH - 120, 4, number)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> WorkItem:
    """A PDF with enough pages for two ranges, planned."""
    from ingest_tests.stages.test_doctags import planned

    content = paper(*(partial(_page, number=number) for number in range(PAGES)))
    return planned(tmp_path_factory.mktemp("book") / "book.pdf", content)


def test_pages_that_were_read_ahead_make_the_same_row(book: WorkItem):
    """The document's own turn puts them together."""
    counted = PageCounter(STAGE)(book, TWO).counts["pages"]
    alone = STAGE.rows(book, TWO)
    ranges = range_items({book.item_id: counted}, [book], workers=2)

    for item in ranges:
        RangeReader(STAGE)(item, TWO)

    assert counted == PAGES
    assert len({item.item_id for item in ranges}) == 2
    assert PageStore(book).known().is_whole
    assert STAGE.rows(book, TWO) == alone


def test_a_range_that_is_there_is_not_read_again_unless_all_is(book: WorkItem):
    """A killed run finds its pages; a forced one wants none of them."""
    first, _ = range_items({book.item_id: PAGES}, [book], workers=2)
    path = Path(RangeReader(STAGE)(first, TWO).outputs[0])
    path.write_bytes(b"left by somebody")

    RangeReader(STAGE)(first, TWO)
    assert path.read_bytes() == b"left by somebody"
    RangeReader(STAGE)(first, replace(TWO, anew=True))
    assert path.read_bytes() != b"left by somebody"


def test_a_damaged_range_counts_as_absent(book: WorkItem):
    """Its pages are read with the document."""
    alone = STAGE.rows(book, TWO)
    first, _ = range_items({book.item_id: PAGES}, [book], workers=2)
    path = Path(RangeReader(STAGE)(first, TWO).outputs[0])
    path.write_bytes(path.read_bytes()[:100])

    assert STAGE.rows(book, TWO) == alone


def test_short_documents_and_uncounted_ones_are_left_to_their_own_turn(book: WorkItem):
    """One that failed to be counted will say why when it is read."""
    assert range_items({book.item_id: PAGES - 1}, [book], workers=2) == []
    assert range_items({}, [book], workers=2) == []


def test_a_file_that_changed_since_it_was_planned_gives_no_pages(tmp_path: Path):
    """They would be put together with those of the file as it was."""
    from ingest_tests.stages.test_doctags import planned

    item = planned(tmp_path / "book.pdf", paper(partial(_page, number=1)))
    first, _ = range_items({item.item_id: PAGES}, [item], workers=2)
    (tmp_path / "book.pdf").write_bytes(paper(partial(_page, number=2)))

    with pytest.raises(DocumentChanged):
        RangeReader(STAGE)(first, TWO)

    assert PageStore(item).known().numbers == frozenset()
