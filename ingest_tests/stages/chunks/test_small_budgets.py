"""Documents that leave almost no budget: long headings and captions, small chunks, large characters."""

from typing import Any

import pytest
from docling_core.types.doc import (
    DocItemLabel,
    DoclingDocument,
    GroupLabel,
    RichTableCell,
    TableCell,
    TableData,
)

from ingest_assets.settings.chunks import ChunkOptions, resolve_options
from ingest_assets.stages.chunks.cutter import Cutter
from ingest_tests.stages.chunks.conftest import tokenizer_of
from ingest_tests.stages.chunks.documents import table_of
from ingest_tests.stages.chunks.test_bad_input import text_only

LONG = "The keeper of the bridge counts every cable and every bolt in spring. " * 8
OPTIONS: list[dict[str, Any]] = [
    {},
    {"tables": "rows"},
    {"tables": "values"},
    {"min_tokens": 8, "overlap_tokens": 4, "tables": "rows"},
]


def chunked(document: DoclingDocument, kind: str, **options: Any) -> tuple[list[Any], list[int]]:
    """Return a document's pieces, and the tokens of each."""
    cutter = Cutter(tokenizer_of(kind), resolve_options(ChunkOptions(**{"max_tokens": 16} | options)))
    pieces = cutter.pieces(document)[0]
    return pieces, [cutter.count(piece.contextualized) for piece in pieces]


def below(heading: str, text: str) -> DoclingDocument:
    """A heading and a paragraph."""
    document = DoclingDocument(name="x")
    document.add_heading(heading)
    document.add_text(DocItemLabel.TEXT, text)
    return document


@pytest.mark.parametrize("letters", [*range(5, 20), 200])
def test_headings_that_leave_no_room_for_a_character_are_left_out(kind: str, letters: int) -> None:
    """The text is cut within the limit for any number of remaining tokens."""
    text = "漢字 😀 Die Brücke " * 3

    pieces, tokens = chunked(below(" ".join("x" * letters), text), kind)

    assert max(tokens) <= 16
    assert "".join("".join(piece.text.split()) for piece in pieces) == "".join(text.split())


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("text", ["ﷺ" * 3, "👩\u200d👩\u200d👧\u200d👦" * 9, "a ﷺ b " * 9, " \n" * 200])
def test_a_character_of_more_tokens_than_a_chunk_is_a_chunk(
    kind: str, text: str, options: dict[str, Any]
) -> None:
    """It cannot be cut, and must not make the document fail."""
    pieces, tokens = chunked(text_only(text, "The end."), kind, **options)

    assert all(count <= 16 for piece, count in zip(pieces, tokens, strict=True) if "ﷺ" not in piece.text)
    assert "".join(text.split()) in "".join("".join(piece.text.split()) for piece in pieces)


def test_blanks_of_a_thousand_kinds_are_cut_as_one() -> None:
    """The library recurses once for each kind of blank."""
    blanks = [
        f"{first}{second}{third}"
        for first in "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
        for second in "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
        for third in "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    ]
    text = "".join(f"w{number}{blank}" for number, blank in enumerate(blanks))

    pieces, tokens = chunked(text_only(text), "packaged")

    assert max(tokens) <= 16
    assert " ".join(piece.text for piece in pieces).split() == text.split()


def odd_tables() -> DoclingDocument:
    """Empty, of one cell, merged, nested, and below a caption that is longer than a chunk."""
    document = DoclingDocument(name="x")
    document.add_heading("Tables")
    place = {"start_row_offset_idx": 0, "start_col_offset_idx": 0}
    for data in (
        TableData(num_rows=0, num_cols=0),
        TableData(num_rows=2, num_cols=2),
        table_of([""]),
        table_of([LONG]),
        table_of(["Name"], [LONG]),
        TableData(
            num_rows=3,
            num_cols=3,
            table_cells=[TableCell(text=LONG, end_row_offset_idx=2, end_col_offset_idx=3, **place)],
        ),
    ):
        document.add_table(data, caption=document.add_text(DocItemLabel.CAPTION, LONG))
    outer = document.add_table(TableData(num_rows=1, num_cols=1))
    group = document.add_group(GroupLabel.UNSPECIFIED, parent=outer)
    document.add_table(table_of(["a", "b"], ["1", LONG]), parent=group)
    cell = RichTableCell(text="x", ref=group.get_ref(), end_row_offset_idx=1, end_col_offset_idx=1, **place)
    outer.data.table_cells.append(cell)
    return document


@pytest.mark.parametrize("options", OPTIONS)
def test_tables_of_every_odd_shape_are_cut(kind: str, options: dict[str, Any]) -> None:
    """With every way of writing them, within the limit."""
    pieces, tokens = chunked(odd_tables(), kind, **options)

    assert max(tokens) <= 16
    assert sum(piece.text.count("bolt") for piece in pieces) >= 8 * 6


@pytest.mark.parametrize("options", OPTIONS)
def test_headings_and_lists_of_any_depth_and_number_are_cut(options: dict[str, Any]) -> None:
    """Ten thousand headings, and deeply nested lists."""
    document = DoclingDocument(name="x")
    for number in range(10_000):
        document.add_heading(f"Section {number}", level=number % 90 + 1)
    document.add_text(DocItemLabel.TEXT, "The end.")
    parent = document.add_list_group()
    for number in range(150):
        item = document.add_list_item(f"Item {number}", parent=parent)
        parent = document.add_list_group(parent=item)

    pieces, tokens = chunked(document, "packaged", **options)

    assert max(tokens) <= 16
    assert "Item 149" in pieces[-1].text
