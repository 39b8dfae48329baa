"""The embedded engine from PDF to document, on pages drawn by the tests."""

from pathlib import Path

import pytest
from docling_core.types.doc import DoclingDocument

from ingest_tests.parsing import documents
from ingest_tests.parsing.conftest import Read
from ingest_tests.parsing.pdf.papers import Sheet, paper

TABLE = [("Hive", "Weight", "Fed"), ("A1", "31 kg", "no"), ("B2", "24 kg", "yes"), ("C3", "28 kg", "no")]


def _document(read: Read, name: str, content: bytes | Path) -> DoclingDocument:
    return DoclingDocument.model_validate_json(read(name, content).document)


def _labels(document: DoclingDocument) -> list[tuple[str, str]]:
    return [(item.label.value, item.text) for item in document.texts]


def _two_columns(sheet: Sheet) -> None:
    sheet.text(200, 60, "Of Bees and Winter", "Times-Bold", 18)
    for left, start in ((60, 1), (310, 3)):
        top = 110.0
        for number in (start, start + 1):
            sheet.text(left, top, f"{number} Section {'abcd'[number - 1]}", "Times-Bold", 12)
            top = sheet.prose(left, top + 20, 225, 12, seed=number * 7) + 16


def test_columns_are_read_one_after_the_other_with_their_headings(read: Read) -> None:
    """The title is first, and headings have levels."""
    document = _document(read, "paper.pdf", paper(_two_columns))
    headings = [(item.text, item.level) for item in document.texts if item.label.value == "section_header"]  # type: ignore[union-attr]
    assert headings == [
        ("Of Bees and Winter", 1),
        ("1 Section a", 2),
        ("2 Section b", 2),
        ("3 Section c", 2),
        ("4 Section d", 2),
    ]
    assert [item.label.value for item in document.texts].count("text") == 4


def _running_page(number: int) -> object:
    def draw(sheet: Sheet) -> None:
        sheet.text(60, 40, "A handbook of bees", "Times-Italic", 9)
        sheet.prose(60, 90, 470, 20, seed=number)
        sheet.text(290, 800, str(number), size=9)

    return draw


def test_running_heads_and_page_numbers_are_kept_out_of_the_body(read: Read) -> None:
    """They stay in the document, as furniture."""
    found = read("book.pdf", paper(*(_running_page(number) for number in (7, 8, 9))))  # type: ignore[arg-type]
    document = DoclingDocument.model_validate_json(found.document)
    markdown = document.export_to_markdown()
    assert "handbook" not in markdown
    assert found.doctags.count("<page_header>") == found.doctags.count("<page_footer>") == 3


def _list(sheet: Sheet) -> None:
    top = sheet.prose(60, 80, 470, 3)
    for text in ("• Weigh every hive.", "• Feed the light ones.", "• Close the entrance."):
        sheet.text(80, top + 8, text)
        top += 14
    sheet.prose(60, top + 24, 470, 3, seed=11)


def test_lists_become_lists(read: Read) -> None:
    """Their bullets are not part of the text."""
    document = _document(read, "list.pdf", paper(_list))
    assert [item.text for item in document.texts if item.label.value == "list_item"] == [
        "Weigh every hive.",
        "Feed the light ones.",
        "Close the entrance.",
    ]


def _code(sheet: Sheet) -> None:
    top = sheet.prose(60, 80, 470, 4)
    for text in ("def weigh(hive):", "    return hive.kg", "", "weigh(A1)"):
        if text:
            indent = len(text) - len(text.lstrip())
            sheet.text(80 + 6 * indent, top + 8, text.lstrip(), "Courier")
        top += 12
    sheet.prose(60, top + 24, 470, 4, seed=5)


def test_programs_keep_their_lines(read: Read) -> None:
    """And their indentation."""
    document = _document(read, "code.pdf", paper(_code))
    assert ("code", "def weigh(hive):\n    return hive.kg\nweigh(A1)") in _labels(document)


def _ruled_table(sheet: Sheet) -> None:
    top = sheet.prose(60, 80, 470, 6)
    sheet.text(60, top + 12, "Table 1: Hives in autumn", "Times-Bold", 9)
    top += 34
    for row, texts in enumerate(TABLE):
        for left, text in zip((80, 220, 360), texts, strict=True):
            sheet.text(left, top + 18 * row + 4, text)
    for row in range(len(TABLE) + 1):
        sheet.rule(70, top + 18 * row, 460, top + 18 * row)
    for left in (70, 210, 350, 460):
        sheet.rule(left, top, left, top + 18 * len(TABLE))
    sheet.prose(60, top + 18 * len(TABLE) + 30, 470, 6, seed=3)


def test_a_ruled_table_has_its_cells_its_header_and_its_caption(read: Read) -> None:
    """With the real detector."""
    document = _document(read, "table.pdf", paper(_ruled_table))
    [table] = document.tables
    rows = [[cell.text for cell in row] for row in table.data.grid]
    assert rows == [list(row) for row in TABLE]
    assert all(cell.column_header for cell in table.data.grid[0])
    assert table.caption_text(document) == "Table 1: Hives in autumn"


def _contents(sheet: Sheet) -> None:
    sheet.text(60, 70, "Contents", "Times-Bold", 14)
    for at, entry in enumerate(("1 Bees", "2 Hives", "3 Wax", "4 Honey", "5 Winter")):
        sheet.text(60, 110 + 16 * at, entry)
        sheet.text(505 - 5 * len(str(3 * at + 1)), 110 + 16 * at, str(3 * at + 1))


def test_a_table_of_contents_is_an_index_not_a_row_of_headings(read: Read) -> None:
    """Its entries look like headings."""
    document = _document(read, "contents.pdf", paper(_contents))
    [index] = document.tables
    assert index.label.value == "document_index"
    assert [cell.text for cell in index.data.grid[3]] == ["4 Honey", "10"]
    assert ("section_header", "Contents") in _labels(document)


def _sideways(sheet: Sheet) -> None:
    for at in range(24):
        sheet.turned(80 + 14 * at, 760, f"Line {at} runs from the bottom of the sheet to its top, as all do.")


def test_a_page_set_on_its_side_is_read_along_its_lines(read: Read) -> None:
    """From the first line to the last."""
    text = " ".join(item.text for item in _document(read, "side.pdf", paper(_sideways)).texts)
    places = [text.find(f"Line {at} runs from the bottom of the sheet to its top") for at in range(24)]
    assert places == sorted(places)
    assert -1 not in places


def _stamped(sheet: Sheet) -> None:
    sheet.turned(30, 600, "stamp:2206.01062 [bees] 2 June 2022", 16)
    sheet.prose(80, 80, 450, 30)


def test_a_stamp_along_the_margin_is_furniture(read: Read) -> None:
    """Archives print one on every first page."""
    document = _document(read, "stamp.pdf", paper(_stamped))
    assert ("page_header", "stamp:2206.01062 [bees] 2 June 2022") in _labels(document)


def test_a_page_with_garbled_text_is_read_by_ocr(read: Read) -> None:
    """Its font maps all letters to private characters."""
    cmap = b"1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <20> <7E> <E020> endbfrange"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents 5 0 R>>"
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding/ToUnicode 6 0 R>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[4 0 R]/Count 1>>",
        font,
        page,
        (b"BT /F1 24 Tf 60 700 Td (Honey bees forage in spring) Tj ET", 5),
        (b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap " + cmap + b" endcmap end end", 6),
    ]
    found = read("private.pdf", documents.pdf_file(objects))
    assert "Honey bees forage in spring" in found.doctags


@pytest.mark.parametrize("turn", [180, 270])
def test_a_scan_is_read_in_any_orientation(read: Read, tmp_path: Path, turn: int) -> None:
    """With its lines in order."""
    from PIL import Image, ImageDraw

    picture = Image.new("L", (1000, 700), "white")
    pen = ImageDraw.Draw(picture)
    lines = ["Honey bees forage in spring", "They cluster in the winter", "Weigh every hive in autumn"]
    for at, text in enumerate(lines):
        pen.text((80, 120 + 90 * at), text, fill="black", font_size=44)
    picture.rotate(turn, expand=True).save(tmp_path / "scan.pdf", "PDF", resolution=120)
    text = " ".join(item.text for item in _document(read, "scan.pdf", tmp_path / "scan.pdf").texts)
    assert text == " ".join(lines)
