"""Page ranges of long documents are read before the documents' turn, once."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ingest_assets.app.stage_run import before_batch
from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import Record, WorkItem
from ingest_assets.parsing.page_ranges import MIN_RANGE_PAGES
from ingest_assets.runner import NoProgress
from ingest_assets.settings.execution import StageOptions
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_assets.stages.doctags import DoctagsStage, PageStore
from ingest_tests.parsing.pdf.papers import Sheet, paper
from ingest_tests.stages.test_doctags import planned

STAGE = DoctagsStage()


def _page(sheet: Sheet, number: int) -> None:
    sheet.text(60, 60, f"Stores of year {number}", "Times-Bold", 14)


@pytest.fixture
def book(tmp_path: Path) -> WorkItem:
    """A PDF with enough pages and bytes for two ranges, planned."""
    pages = (partial(_page, number=number) for number in range(2 * MIN_RANGE_PAGES))
    return planned(tmp_path / "book.pdf", paper(*pages) + b"\n%" + b"x" * 100_000)


def _read_ahead(
    item: WorkItem, workers: int = 2, stage: DoctagsStage | ChunksStage = STAGE, **options: bool
) -> list[str]:
    log: list[str] = []
    backend = ThreadBackend(workers)
    stage.before_batch(before_batch([item], StageOptions(**options), backend, NoProgress(), log.append))
    backend.close(0)
    return log


def _stored(item: WorkItem) -> dict[str, int]:
    folder = Path(item.output_paths[0]).parent
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.pickle")}


def test_all_pages_of_a_long_document_are_read_before_its_turn(book: WorkItem):
    """The log says so, because no document is finished meanwhile."""
    assert _read_ahead(book) == ["doctags: reading long documents first (1, in 2 page ranges)."]
    assert PageStore(book).load().is_complete


def test_pages_that_a_killed_run_has_read_are_reused_without_force(book: WorkItem):
    """`--force` reads all pages again."""
    _read_ahead(book)
    before = _stored(book)

    _read_ahead(book)
    assert _stored(book) == before
    _read_ahead(book, force=True)
    assert _stored(book).keys() == before.keys()
    assert all(_stored(book)[name] > written for name, written in before.items())


def test_nothing_is_read_ahead_for_one_worker_current_items_or_other_stages(book: WorkItem):
    """One worker would gain nothing."""
    current = replace(book, record=Record(book.fingerprint, 1))

    assert (
        _read_ahead(book, workers=1) == _read_ahead(current) == _read_ahead(book, stage=ChunksStage()) == []
    )
    assert _stored(book) == {}


def test_a_document_without_a_page_count_is_not_read_ahead(tmp_path: Path):
    """Its failure is recorded with its code in its turn."""
    broken = planned(tmp_path / "broken.pdf", b"%PDF-1.7\n" + b"x" * 100_000)

    assert _read_ahead(broken) == []
    assert _stored(broken) == {}
