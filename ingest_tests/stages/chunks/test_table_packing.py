"""Tables by rows and by values: one long row, a caption or a missing name does not break up the others."""

from collections.abc import Sequence
from typing import Any

import pytest
from docling_core.types.doc import DocItemLabel, DoclingDocument
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.settings.chunks import ChunkOptions, resolve_options
from ingest_assets.stages.chunks.cutter import Cutter, Piece
from ingest_tests.conftest import examples_times
from ingest_tests.stages.chunks.conftest import tokenizer_of
from ingest_tests.stages.chunks.documents import table_of

NAMES = ["Part", "Price", "Note", "Place"]
LONG = " ".join(["needs approval by the board before any order is placed with the supplier,"] * 25)
CAPTION = "Table 1: all parts that the shop sells, with their prices and places. " * 5
WORDS = ["bridge", "cable", "deck", "railing", "unbelievable;", "1,234.50", "order,", "spring."]


def shelf(long_row: int = 0, rows: int = 40) -> list[list[str]]:
    """Parts with their prices, one of them with a note that is longer than a chunk."""
    return [
        [f"Part-{row}", f"{row * 3.5:.2f} EUR", LONG if row == long_row else "in stock", f"shelf {row}"]
        for row in range(1, rows + 1)
    ]


def captioned(caption: str, *rows: Sequence[str]) -> DoclingDocument:
    """A document of one table below a caption."""
    document = DoclingDocument(name="x")
    document.add_heading("Price list")
    document.add_table(table_of(*rows), caption=document.add_text(DocItemLabel.CAPTION, caption))
    return document


def cut(document: DoclingDocument, kind: str = "packaged", **options: Any) -> tuple[list[Piece], Cutter]:
    """Return a document's pieces, none larger than `max_tokens`, and its cutter."""
    cutter = Cutter(tokenizer_of(kind), resolve_options(ChunkOptions(**options)))
    pieces = cutter.pieces(document)[0]
    assert max(cutter.count(piece.contextualized) for piece in pieces) <= options["max_tokens"]
    return pieces, cutter


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def words(texts: Sequence[str]) -> set[str]:
    return {word for text in texts for word in text.split()}


@pytest.mark.parametrize("long_row", [1, 20, 40])
@pytest.mark.parametrize("max_tokens", [64, 128, 256])
def test_one_long_row_is_cut_by_itself(kind: str, long_row: int, max_tokens: int) -> None:
    """All others are whole and below the header; so are the parts of the long one."""
    rows = shelf(long_row)
    max_tokens *= 1 if kind == "packaged" else 4

    pieces, _ = cut(captioned("Parts", NAMES, *rows), kind, max_tokens=max_tokens, tables="rows")

    texts = [piece.text for piece in pieces]
    for row in rows[: long_row - 1] + rows[long_row:]:
        assert [line(NAMES) in text for text in texts if line(row) in text.split("\n")] == [True]
    assert all(line(NAMES) in text for text in texts if text.strip() != "Parts")
    assert words([cell for row in rows for cell in row]) <= words(texts)


def test_parts_of_a_long_row_do_not_repeat_a_header_above_half_of_the_budget() -> None:
    """They have the names of their own columns; rows that fit below the whole header have it."""
    names, short = [f"a rather long name {at}" for at in range(4)], ["1", "2", "3", "4"]

    pieces, _ = cut(captioned("", names, short, ["x", LONG, "y", "z"], short), max_tokens=64, tables="rows")

    texts = [piece.text for piece in pieces]
    assert [line(short) in text for text in texts if line(names) in text] == [True, True]
    assert len(texts) > 6
    assert words([*names, LONG]) <= words(texts)


@pytest.mark.parametrize("tables", ["values", "rows"])
@examples_times(0.5)
@given(
    grid=st.integers(2, 5).flatmap(
        lambda width: st.lists(
            st.lists(
                st.lists(st.sampled_from(WORDS), min_size=1, max_size=50).map(" ".join),
                min_size=width,
                max_size=width,
            ),
            min_size=2,
            max_size=6,
        )
    ),
    max_tokens=st.sampled_from([32, 64, 200]),
    caption=st.sampled_from(["", "Parts", CAPTION]),
)
def test_no_word_of_any_table_is_lost(
    tables: Any, grid: list[list[str]], max_tokens: int, caption: str
) -> None:
    """Wide headers, long rows, long captions."""
    numbered = [[f"{cell} r{row}c{at}" for at, cell in enumerate(cells)] for row, cells in enumerate(grid)]

    pieces, _ = cut(captioned(caption, *numbered), max_tokens=max_tokens, tables=tables)

    text = "".join("".join(piece.text.split()) for piece in pieces)
    shown = [cell for row in numbered[1:] for cell in row] + numbered[0][tables == "values" :]
    assert [cell for cell in shown if cell.split()[-1] not in text] == []


@pytest.mark.parametrize("caption", ["Parts", CAPTION, CAPTION * 3])
def test_a_caption_is_not_repeated(caption: str) -> None:
    """It is in the first chunk, or in chunks of its own; the others are as full as without it."""
    rows = shelf()

    pieces, cutter = cut(captioned(caption, NAMES, *rows), max_tokens=128, tables="rows")

    of_rows = [piece for piece in pieces if line(NAMES) in piece.text]
    found = [part for piece in of_rows for part in piece.text.split("\n") if part.startswith("| Part-")]
    assert found == [line(row) for row in rows]
    assert [piece.text.count(line(NAMES)) for piece in of_rows] == [1] * len(of_rows)
    assert min(cutter.count(piece.contextualized) for piece in of_rows[1:-1]) > 128 - 24
    assert words([caption]) <= words([piece.text for piece in pieces])


@pytest.mark.parametrize("tables", ["values", "rows"])
def test_an_item_in_several_parts_is_listed_once(tables: Any) -> None:
    """Also in joined chunks."""
    document = captioned("Parts", NAMES, *shelf(rows=12))
    document.add_text(DocItemLabel.TEXT, "The end.")

    for options in ({"max_tokens": 128}, {"max_tokens": 128, "min_tokens": 64}):
        pieces, _ = cut(document, tables=tables, **options)
        refs = [[item.self_ref for item in piece.items] for piece in pieces]
        assert refs == [list(dict.fromkeys(found)) for found in refs]


def test_a_value_without_a_name_is_not_cut() -> None:
    """Nor is a value of several sentences or lines; empty values are left out."""
    rows = [[f"Row {row}", f"Open {row}. Ask\nfor {row}", "", f"{row} kg"] for row in range(1, 30)]
    values = [text for row in rows for text in (f"{row[0]}, {row[1]}", f"{row[0]}, Weight = {row[3]}")]

    pieces, _ = cut(captioned("Parts", ["Name", "", "", "Weight"], *rows), max_tokens=64, tables="values")

    assert len(pieces) > 5
    assert [sum(value in piece.text for piece in pieces) >= 1 for value in values] == [True] * len(values)
    assert " ".join(piece.text for piece in pieces).split() == ["Parts", *". ".join(values).split()]


def test_a_value_longer_than_a_chunk_is_cut_by_itself() -> None:
    """Its neighbours are not cut."""
    pieces, _ = cut(captioned("Parts", NAMES, *shelf(20)), max_tokens=64, tables="values")

    texts = [piece.text for piece in pieces]
    assert all(any(f"Part-{row}, Place = shelf {row}" in text for text in texts) for row in range(1, 41))
    assert words([LONG]) <= words(texts)


def test_names_are_kept_without_values() -> None:
    """A search can find an empty form, and a row without values."""
    rows = [["Name", "Price", "Stock"], ["saw", "", ""], ["axe", "", ""]]
    empty, _ = cut(captioned("", *rows), max_tokens=64, tables="values")
    rows[1][1] = "3 EUR"
    filled, _ = cut(captioned("", *rows), max_tokens=64, tables="values")

    assert {"saw,", "axe,", "Price", "Stock"} <= words([empty[0].text])
    assert filled[0].text.strip() == "saw, Price = 3 EUR. axe"
