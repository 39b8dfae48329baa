"""Texts that nobody wrote by hand: cut in time, within the budget, and without costing the document."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from docling_core.types.doc import DocItemLabel, DoclingDocument, TableCell, TableData

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.items import ItemContext
from ingest_assets.embedders.model_files import tokenizer_files
from ingest_assets.settings.chunks import ChunkOptions, settled
from ingest_assets.stages.chunks.cut import Cutter
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_assets.storage.table import Table
from ingest_tests.stages.chunks.conftest import tokenizer_of
from ingest_tests.stages.conftest import admitting, doctags_table, item_of

__all__ = ["doctags_table"]

HUGE = {
    "one word of 5 MB": "x1y2" * 1_250_000,
    "200,000 words": "The cable was inspected in spring. " * 33_000,
    "no spaces": "漢字仮名交じり文。" * 20_000,
    "emoji": "👩\u200d👩\u200d👧\u200d👦" * 20_000,
    "right to left": "שלום עולם \u202e" * 20_000,
    "nothing but signs": "!?.,;:-" * 30_000,
    "null characters": "a\x00b " * 50_000,
}


def text_only(*texts: str) -> DoclingDocument:
    """A document of paragraphs."""
    document = DoclingDocument(name="x")
    for text in texts:
        document.add_text(DocItemLabel.TEXT, text)
    return document


def cutter_for(kind: str = "packaged", max_tokens: int = 254) -> Cutter:
    return Cutter(tokenizer_of(kind), settled(ChunkOptions(max_tokens=max_tokens)))


@pytest.mark.parametrize("name", HUGE)
def test_a_text_far_past_the_limit_is_cut_within_it(name: str) -> None:
    """Every character but blanks is in some chunk, in order."""
    cutter = cutter_for()

    pieces, _ = cutter.pieces(text_only(HUGE[name]))

    assert max(cutter.count(piece.contextualized) for piece in pieces) <= 254
    assert "".join("".join(piece.text.split()) for piece in pieces) == "".join(HUGE[name].split())


def test_a_huge_cell_is_cut_within_the_limit() -> None:
    """And both ways of writing tables manage."""
    place = {"start_row_offset_idx": 1, "end_row_offset_idx": 2}
    cells = [
        TableCell(text="cable " * 20_000, start_col_offset_idx=1, end_col_offset_idx=2, **place),
        TableCell(text="row", start_col_offset_idx=0, end_col_offset_idx=1, **place),
    ]
    document = text_only("Before.")
    document.add_table(TableData(table_cells=cells, num_rows=2, num_cols=2))
    cutter = cutter_for()

    pieces, _ = cutter.pieces(document)

    assert max(cutter.count(piece.contextualized) for piece in pieces) <= 254
    assert sum(piece.text.count("cable") for piece in pieces) == 20_000


def test_other_tokenizers_keep_the_limit_too(kind: str) -> None:
    """Where nothing is known of words."""
    cutter = cutter_for(kind, 64)

    pieces, _ = cutter.pieces(text_only("x1y2" * 3000, "漢字仮名交じり文" * 300, "The cable. " * 500))

    assert max(cutter.count(piece.contextualized) for piece in pieces) <= 64


Rows = Callable[..., tuple[list[dict[str, Any]], ItemContext]]


@pytest.fixture
def rows(doctags_table: Callable[..., Table], tmp_path: Path) -> Rows:
    """The rows that the stage makes of a document, and what it counted."""

    def run(document: DoclingDocument, stage: ChunksStage) -> tuple[list[dict[str, Any]], ItemContext]:
        (candidate,) = stage.candidates(table := doctags_table({"docs:a": document}), admitting(table))
        context = ItemContext()
        return stage.rows(item_of(stage, candidate, tmp_path), context).to_pylist(), context

    return run


def test_a_chunk_without_a_visible_character_is_left_out_and_counted(rows: Rows) -> None:
    """It could not be found by anything, and its vector would mean nothing."""
    stage = ChunksStage(ChunkOptions(max_tokens=16, merge_peers=False))

    found, context = rows(text_only("\x00\x01\u200b", "The cable.", "\x02\x03"), stage)

    assert [(row["ordinal"], row["text"], row["start_offset"]) for row in found] == [(0, "The cable.", 0)]
    assert context.counts == {"chunks_left_out": 2}


def test_a_document_of_control_characters_keeps_its_chunk(rows: Rows) -> None:
    """One bad document is not lost, nor are its neighbours."""
    found, context = rows(text_only("\x00\x01\x02"), ChunksStage())

    assert (len(found), context.counts) == (1, {})


def test_offsets_point_at_what_is_new(rows: Rows) -> None:
    """What a chunk repeats stands before its own text, and is not counted twice."""
    stage = ChunksStage(ChunkOptions(max_tokens=48, overlap_tokens=12))
    found, _ = rows(text_only(" ".join(f"w{number}" for number in range(200))), stage)

    own = [after["start_offset"] - row["start_offset"] for row, after in pairwise(found)]
    repeated = [row["text"][: len(row["text"]) - length] for row, length in zip(found, own, strict=False)]
    assert repeated[0] == ""
    assert all(
        text and before["text"].endswith(text.strip())
        for text, before in zip(repeated[1:], found, strict=False)
    )
    assert max(row["tokens"] for row in found) <= 48


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, r"has no tokenizer\.json"), ("{", "cannot be used"), ("[]", "not a JSON object")],
)
def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    """In one line that names the folder."""
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")

    with pytest.raises(ConfigError, match=message):
        tokenizer_files(str(tmp_path))
