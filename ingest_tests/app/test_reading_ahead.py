"""Pages of long documents are read before their turn, once."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ingest_assets.app.stage_run import before_batch
from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import Record, WorkItem
from ingest_assets.parsing.page_ranges import SHORTEST
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
    pages = (partial(_page, number=number) for number in range(2 * SHORTEST))
    return planned(tmp_path / "book.pdf", paper(*pages) + b"\n%" + b"x" * 100_000)


def _ahead(
    item: WorkItem, workers: int = 2, stage: DoctagsStage | ChunksStage = STAGE, **options: bool
) -> list[str]:
    said: list[str] = []
    backend = ThreadBackend(workers)
    stage.before_batch(before_batch([item], StageOptions(**options), backend, NoProgress(), said.append))
    backend.close(0)
    return said


def _stored(item: WorkItem) -> dict[str, int]:
    folder = Path(item.output_paths[0]).parent
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.pickle")}


def test_all_pages_of_a_long_document_are_there_before_its_turn(book: WorkItem):
    """And whoever looks at the log knows why nothing is done yet."""
    assert _ahead(book) == ["doctags: long documents first: 1, in 2 ranges of pages."]
    assert PageStore(book).known().is_whole


def test_pages_that_a_killed_run_left_are_not_read_again_unless_that_is_wished(book: WorkItem):
    """A killed machine never costs finished work; `--force` wants all of it done again."""
    _ahead(book)
    before = _stored(book)

    _ahead(book)
    assert _stored(book) == before
    _ahead(book, force=True)
    assert _stored(book).keys() == before.keys()
    assert all(_stored(book)[name] > written for name, written in before.items())


def test_nothing_is_read_ahead_for_one_worker_for_what_is_current_or_for_other_stages(book: WorkItem):
    """What one worker does, it does in order."""
    current = replace(book, record=Record(book.fingerprint, 1))

    assert _ahead(book, workers=1) == _ahead(current) == _ahead(book, stage=ChunksStage()) == []
    assert _stored(book) == {}


def test_a_document_that_cannot_be_counted_is_left_to_its_own_turn(tmp_path: Path):
    """There its failure is recorded, with its code."""
    broken = planned(tmp_path / "broken.pdf", b"%PDF-1.7\n" + b"x" * 100_000)

    assert _ahead(broken) == []
    assert _stored(broken) == {}
