"""Tables in chunks: cut between rows with the header repeated, and no half row at the start of a chunk."""

from collections.abc import Sequence
from html import unescape
from typing import Any

import pytest
from docling_core.types.doc import DocItemLabel, DoclingDocument

from ingest_assets.settings.chunks import ChunkOptions, resolve_options
from ingest_assets.stages.chunks.cutter import Cutter, Piece, is_table
from ingest_tests.stages.chunks.conftest import tokenizer_of
from ingest_tests.stages.chunks.documents import table_of

NAMES = ["Product", "Price", "Stock", "Description"]
LONG = "A scraper of hardened spring steel for prising apart frames that the bees have glued together. " * 3
GRID = [["hive", "frame"], *([f"box {row}", f"comb {row}"] for row in range(1, 3))]
AFTERWARDS = "Afterwards the keeper writes down what was seen and closes every hive again. " * 3


def cut(document: DoclingDocument, **options: Any) -> tuple[list[Piece], Cutter]:
    """Return a document's pieces, and its cutter."""
    cutter = Cutter(tokenizer_of("packaged"), resolve_options(ChunkOptions(**options)))
    return cutter.pieces(document)[0], cutter


def around(rows: Sequence[Sequence[str]], *texts: str, heading: str = "Bees") -> DoclingDocument:
    """Return a section with one text before the table and the others after it."""
    document = DoclingDocument(name="x")
    document.add_heading(heading)
    document.add_text(DocItemLabel.TEXT, texts[0])
    document.add_table(table_of(*rows))
    for text in texts[1:]:
        document.add_text(DocItemLabel.TEXT, text)
    return document


def only(*rows: Sequence[str]) -> DoclingDocument:
    """Return a document of one table."""
    document = DoclingDocument(name="x")
    document.add_table(table_of(*rows))
    return document


def cells(line: str) -> list[str]:
    """Return the cells of a Markdown row."""
    return [unescape(cell.strip()) for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


@pytest.mark.parametrize("long_row", [1, 20])
def test_a_table_with_a_long_cell_is_cut_between_rows(long_row: int) -> None:
    """The rule below the header does not grow with the widest cell."""
    rows = [[f"Tool {row}", f"{row} EUR", str(row * 3), f"Steel {row}"] for row in range(1, 40)]
    rows[long_row][-1] = LONG.strip()

    pieces, cutter = cut(only(NAMES, *rows), max_tokens=200, tables="rows")

    lines = [piece.text.splitlines() for piece in pieces]
    assert len(pieces) > 1
    assert max(cutter.count(piece.contextualized) for piece in pieces) <= 200
    assert [(cells(header), set(rule)) for header, rule, *_ in lines] == [(NAMES, set("| -"))] * len(pieces)
    assert [cells(line) for _, _, *body in lines for line in body] == rows


@pytest.mark.parametrize(
    "sign", ["|", "\\|", "||", "&", "\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\t"]
)
def test_a_row_is_one_line_for_any_cells(sign: str) -> None:
    """A pipe within a cell is escaped, and a line break becomes a blank, in the header, too."""
    rows = [[f"one {sign} two", "name"], *([f"{row} {sign} x", f"y{sign}{row}"] for row in range(20))]
    shown = [[" ".join(text.split()) for text in row] for row in rows]

    pieces, _ = cut(only(*rows), max_tokens=100, tables="rows")

    lines = [piece.text.splitlines() for piece in pieces]
    tables = [[[" ".join(cell.split()) for cell in cells(line)] for line in piece] for piece in lines]
    assert len(pieces) > 1
    assert [table[:2] for table in tables] == [[shown[0], ["-", "-"]]] * len(pieces)
    assert [row for table in tables for row in table[2:]] == shown[1:]


def test_stacked_headers_become_one_row_and_the_first_row_is_the_default_header() -> None:
    """As Docling writes them."""
    stacked, bare = only(["Price", "Price"], ["net", "gross"], ["1", "2"]), only(["a", "b"], ["1", "2"])
    for cell in stacked.tables[0].data.table_cells[:4]:
        cell.column_header = True
    for cell in bare.tables[0].data.table_cells:
        cell.column_header = False

    texts = [cut(document, tables="rows")[0][0].text for document in (stacked, bare)]

    assert texts == [
        "| Price - net | Price - gross |\n| - | - |\n| 1 | 2 |",
        "| a | b |\n| - | - |\n| 1 | 2 |",
    ]


def test_a_table_whose_header_and_row_do_not_fit_is_cut_between_columns() -> None:
    """Every value stays below its own name; the first cell, which names the row, is in each part."""
    names, values = ([f"{word} {at}" for at in range(20)] for word in ("name", "value"))

    pieces, cutter = cut(only(names, values), max_tokens=64, tables="rows", merge_peers=False)

    lines = [piece.text.splitlines() for piece in pieces]
    assert max(cutter.count(piece.contextualized) for piece in pieces) <= 64
    assert {(cells(header)[0], cells(body)[0]) for header, _, body in lines} == {("name 0", "value 0")}
    assert [name for header, _, _ in lines for name in cells(header)[1:]] == names[1:]
    assert [value for _, _, body in lines for value in cells(body)[1:]] == values[1:]


@pytest.mark.parametrize("tables", ["docling", "values", "rows"])
def test_a_chunk_after_text_and_a_table_has_no_overlap(tables: Any) -> None:
    """A chunk can end with a table without being one."""
    document = around(GRID, "The keeper counts.", AFTERWARDS)

    pieces, _ = cut(document, max_tokens=64, overlap_tokens=16, tables=tables)

    assert [item.self_ref for item in pieces[0].items] == ["#/texts/1", "#/tables/0"]
    assert (pieces[1].headings, pieces[1].repeated) == (pieces[0].headings, "")


@pytest.mark.parametrize("tables", ["docling", "values", "rows"])
def test_a_table_below_a_heading_longer_than_a_chunk_has_no_overlaps(tables: Any) -> None:
    """Docling drops such a heading, and with it the types of the items below."""
    rows = [NAMES, *([f"{name} {row}" for name in NAMES] for row in range(20))]
    document = around(rows, AFTERWARDS, AFTERWARDS, AFTERWARDS, heading="Bees " * 80)

    pieces, _ = cut(document, max_tokens=64, overlap_tokens=16, tables=tables, merge_peers=False)

    of_table = [at for at, piece in enumerate(pieces) if is_table(piece)]
    assert len(of_table) > 2
    assert {pieces[at].repeated for at in of_table} == {""}
    assert pieces[of_table[-1] + 1].repeated == ""
    assert pieces[-1].repeated != ""


@pytest.mark.parametrize("tables", ["docling", "values", "rows"])
def test_the_overlap_with_a_short_text_after_a_table_has_no_row(tables: Any) -> None:
    """Even if more would fit."""
    document = around(GRID, "The keeper counts.", "All are well.", AFTERWARDS)

    pieces, _ = cut(document, max_tokens=72, overlap_tokens=24, tables=tables)

    assert pieces[0].items[-1].self_ref == "#/texts/2"
    assert pieces[1].repeated == "All are well.\n"
