"""A long document is read by all workers, with the same result."""

from functools import partial
from pathlib import Path

import pytest

from ingest_assets.parsing.page_ranges import MIN_RANGE_PAGES
from ingest_tests.conftest import Command
from ingest_tests.parsing.pdf.papers import WIDTH, Sheet, paper

PAGES = 2 * MIN_RANGE_PAGES + 1


def _page(sheet: Sheet, number: int) -> None:
    sheet.text(60, 60, f"{number} Stores of year {number}", "Times-Bold", 14)
    sheet.prose(60, 90, WIDTH - 120, 40, 5 * number)


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder with one long PDF and a note."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    pages = (partial(_page, number=number) for number in range(1, PAGES + 1))
    # as many bytes as a picture, after the end, so that the file is large
    (folder / "book.pdf").write_bytes(paper(*pages) + b"\n%" + b"x" * 100_000)
    (folder / "note.md").write_text("# Note\n\nThe keeper weighs each hive in autumn.\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_two_workers_share_a_long_document_with_the_bytes_of_one_worker(
    ingest: Command, shelf: Path, new_home
):
    """Its pages are staged before its turn, and removed when the table is written."""
    shared = ingest("doctags", "--input", shelf, "--workers", 2)
    alone = new_home("alone")
    single = alone("doctags", "--input", shelf, "--workers", 1)

    assert "doctags pages: 2 done" in shared.stderr
    assert "doctags pages" not in single.stderr
    assert ingest.hashes() == alone.hashes()
    assert not list(ingest.home.rglob("*.pickle"))


@pytest.mark.slow
def test_a_second_run_reads_no_page_again(ingest: Command, shelf: Path):
    """Not even to count the pages."""
    ingest("doctags", "--input", shelf, "--workers", 2)

    assert "doctags pages" not in ingest("doctags", "--workers", 2).stderr
