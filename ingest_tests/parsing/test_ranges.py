"""A document that is read by page ranges is equal to one that is read at once."""

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from ingest_assets.parsing.errors import OcrTimeout
from ingest_assets.parsing.media import PDF
from ingest_assets.parsing.page_ranges import (
    MIN_RANGE_PAGES,
    PageRange,
    ReadPages,
    merge_pages,
    split_pages,
    unpack,
)
from ingest_assets.parsing.reader import DocumentReader
from ingest_assets.settings.parsing import ParsingOptions
from ingest_tests.parsing.pdf.papers import WIDTH, Sheet, paper

PAGES = 5


def _page(sheet: Sheet, number: int) -> None:
    """A running head, a heading, a paragraph that continues on the next page, a table and a page number."""
    sheet.text(60, 30, "The winter of the bees", size=8)
    sheet.text(60, 60, f"{number}. Stores of year {number}", "Times-Bold", 14)
    end = sheet.prose(60, 90, WIDTH - 120, 12, number)
    for row in range(4):
        sheet.rule(60, end + 20 + 16 * row, WIDTH - 60, end + 20 + 16 * row)
        for column in range(3):
            sheet.text(64 + 150 * column, end + 23 + 16 * row, f"{number}.{row}.{column}")
    sheet.rule(60, end + 84, WIDTH - 60, end + 84)
    sheet.prose(60, end + 110, WIDTH - 120, 30, number + 9)
    sheet.text(WIDTH / 2, 815, str(number), size=8)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory):
    """A PDF of some pages."""
    path = tmp_path_factory.mktemp("book") / "book.pdf"
    path.write_bytes(paper(*(partial(_page, number=number) for number in range(1, PAGES + 1))))
    return path


@given(st.integers(0, 3000), st.integers(1, 64))
def test_ranges_cover_every_page_once_and_are_about_as_long(pages: int, workers: int):
    """No page is read twice, and no range is much longer than the others."""
    ranges = split_pages(pages, workers)

    assert [number for each in ranges for number in range(each.first, each.last + 1)] == list(
        range(1, pages + 1)
    )
    lengths = {each.last - each.first + 1 for each in ranges}
    assert max(lengths) - min(lengths) <= 1
    assert len(ranges) == 1 or min(lengths) >= MIN_RANGE_PAGES
    assert len(ranges) == 1 or workers > 1


def test_pages_are_counted_without_reading_them(reader: DocumentReader, book):
    """A format without pages has none."""
    assert reader.count_pages(book, book.name, PDF) == PAGES
    assert reader.count_pages(book, "notes.md", "text/markdown") == 0


def test_pages_of_one_document_never_reach_the_next(reader: DocumentReader, book, tmp_path):
    """An image uses the pipeline that has just got the pages of a long PDF."""
    note = tmp_path / "note.png"
    picture = Image.new("RGB", (900, 400), "white")
    ImageDraw.Draw(picture).text((60, 150), "Queen found", fill="black", font_size=64)
    picture.save(note)
    before = reader.read(note, note.name, "image/png")
    pages = reader.read_pages(book, book.name, PDF, PageRange(1, PAGES))

    reader.read(book, book.name, PDF, pages)

    assert reader.read(note, note.name, "image/png") == before
    assert "Queen found" in before.doctags


@pytest.mark.slow
@pytest.mark.parametrize("known", ["all", "the first", "the last", "none"])
def test_a_document_read_by_ranges_is_the_same_document(reader: DocumentReader, book, known: str):
    """Headings, furniture and paragraphs across pages are decided over all pages."""
    whole = reader.read(book, book.name, PDF)
    ranges = [
        reader.read_pages(book, book.name, PDF, each).pack() for each in (PageRange(1, 2), PageRange(3, 5))
    ]
    chosen = {"all": ranges, "the first": ranges[:1], "the last": ranges[1:], "none": []}[known]

    read = reader.read(book, book.name, PDF, merge_pages(map(unpack, chosen)))

    assert read == whole
    assert read.pages == PAGES
    assert read.tables == PAGES


def test_known_pages_are_those_of_one_document_only(reader: DocumentReader, book, tmp_path):
    """The next document gets none of them."""
    pages = reader.read_pages(book, book.name, PDF, PageRange(1, PAGES))
    reader.read(book, book.name, PDF, pages)
    other = tmp_path / "other.pdf"
    other.write_bytes(paper(partial(_page, number=77)))

    assert "Stores of year 77" in reader.read(other, other.name, PDF).doctags


def test_time_for_ocr_is_counted_over_all_ranges(reader: DocumentReader, book):
    """A document has one limit for all workers."""
    pages = reader.read_pages(book, book.name, PDF, PageRange(1, PAGES))
    seconds = ParsingOptions().ocr_timeout_seconds + 1

    with pytest.raises(OcrTimeout):
        reader.read(book, book.name, PDF, replace(pages, ocr_seconds=seconds))


def test_merged_ranges_are_complete_without_missing_pages():
    """A page that failed is known too."""
    first, second = ReadPages(total=3, numbers=frozenset({1, 2})), ReadPages(total=3, numbers=frozenset({3}))

    assert merge_pages([first, second]).is_complete
    assert not first.is_complete
    assert not merge_pages([]).is_complete
