"""Tables whose header takes most of a chunk: cut between columns, each below its own name."""

import time
from typing import Any

import pytest
from docling_core.types.doc import DoclingDocument
from hypothesis import given
from hypothesis import strategies as st

from ingest_tests.conftest import examples_times
from ingest_tests.stages.chunks.documents import table_of
from ingest_tests.stages.chunks.test_table_packing import CAPTION, LONG, captioned, cut, line, words

NAMES = ["Part", *(f"a rather long name of column {at}" for at in range(1, 30))]
ALPHABET = st.sampled_from([*"abcxyz019.,-_|&", "é", "漢", "字", "😀", "👩\u200d👩", "\u0301", "ﷺ", "\u200b"])


def wide(rows: int, names: list[str] = NAMES) -> list[list[str]]:
    """Return rows of different short cells."""
    return [[f"Part-{row}", *(f"r{row}c{at}" for at in range(1, len(names)))] for row in range(1, rows + 1)]


def test_a_wide_table_is_cut_between_whole_columns(kind: str) -> None:
    """Each part is a table: names, a rule, and rows of these columns, with the row's name in front."""
    rows = wide(3)

    pieces, _ = cut(captioned("Parts", NAMES, *rows), kind, max_tokens=256, tables="rows")

    cells = set()
    for piece in pieces:
        names, rule, *body = [text for text in piece.text.split("\n") if text.startswith("|")]
        columns = [NAMES.index(name) for name in names[2:-2].split(" | ")]
        assert columns == [0, *range(columns[1], columns[-1] + 1)]
        assert rule == line(["-"] * len(columns))
        for text in body:
            row = next(row for row in rows if text == line([row[at] for at in columns]))
            cells |= {(row[0], at) for at in columns}
    assert len(cells) == 3 * len(NAMES)


def test_a_chunk_has_as_many_columns_as_fit() -> None:
    """Not only one column per chunk."""
    pieces, _ = cut(captioned("", NAMES, *wide(1)), max_tokens=256, tables="rows")

    assert len(pieces) <= 4


def test_only_the_long_cell_is_cut() -> None:
    """Its parts have its column's name and the row's; every other cell is whole."""
    rows = wide(4)
    rows[1][7] = LONG

    pieces, _ = cut(captioned("", NAMES, *rows), max_tokens=128, tables="rows")

    texts = [piece.text for piece in pieces]
    cells = {cell for text in texts for row in text.split("\n") for cell in row[2:-2].split(" | ")}
    assert {cell for row in rows for cell in row if cell != LONG} <= cells
    of_long = [text for text in texts if "supplier" in text]
    assert len(of_long) > 3
    assert all(NAMES[7] in text and "| Part-2 |" in text for text in of_long)


def test_parts_of_a_long_row_begin_with_its_first_cell() -> None:
    """It says what the note is about; a long first cell is not repeated."""
    names = ["Part", "Price", "Note"]
    for first, times in (("Part-7", 1), (LONG[:300], 0)):
        pieces, _ = cut(captioned("", names, [first, "3 EUR", LONG]), max_tokens=128, tables="rows")
        notes = [piece.text for piece in pieces if "supplier" in piece.text][1:]
        assert len(notes) >= 3
        assert {text.count(f"| {first} |") for text in notes} == {times}
        assert all(text.startswith(line(names)) for text in notes)


def test_a_name_longer_than_a_chunk_is_kept() -> None:
    """In chunks of its own, because no row fits below it."""
    pieces, _ = cut(captioned("", [LONG, "Price"], ["saw", "3 EUR"]), max_tokens=64, tables="rows")

    assert words([LONG, "Price", "saw", "3 EUR"]) <= words([piece.text for piece in pieces])


@pytest.mark.parametrize("kind_of_tokenizer", ["packaged", "bpe", "unigram"])
@examples_times(0.5)
@given(
    grid=st.integers(1, 12).flatmap(
        lambda width: st.lists(
            st.lists(
                st.lists(st.lists(ALPHABET, max_size=6).map("".join), max_size=25).map(" ".join),
                min_size=width,
                max_size=width,
            ),
            min_size=2,
            max_size=5,
        )
    ),
    max_tokens=st.sampled_from([48, 64, 200]),
    caption=st.sampled_from(["", "Parts", CAPTION]),
    options=st.sampled_from([{}, {"min_tokens": 16}, {"overlap_tokens": 8}, {"merge_peers": False}]),
)
def test_every_word_of_every_cell_is_whole_in_some_chunk(
    kind_of_tokenizer: str, grid: list[list[str]], max_tokens: int, caption: str, options: dict[str, Any]
) -> None:
    """For any text, unless the word is longer than a chunk."""
    pieces, cutter = cut(
        captioned(caption, *grid), kind_of_tokenizer, max_tokens=max_tokens, tables="rows", **options
    )

    wanted = words([cell.replace("|", "&#124;") for row in grid for cell in row])
    budget = max_tokens - options.get("overlap_tokens", 0) - cutter.count("Price list\n")
    torn = {word for word in wanted - words([piece.text for piece in pieces]) if cutter.count(word) <= budget}
    assert torn == set()


@pytest.mark.slow
def test_a_table_of_many_wide_rows_is_cut_quickly() -> None:
    """Each cell is counted once, not once per column next to it."""
    document = DoclingDocument(name="x")
    names = [f"measured value of sensor {at}" for at in range(100)]
    document.add_table(table_of(names, *wide(1000, names)))

    began = time.perf_counter()
    pieces, _ = cut(document, max_tokens=256, tables="rows")

    assert time.perf_counter() - began < 60
    assert "r1000c99" in pieces[-1].text
