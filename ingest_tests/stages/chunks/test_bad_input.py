"""Extreme texts are cut quickly and within the budget, and never make the document fail."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from docling_core.types.doc import DocItemLabel, DoclingDocument, TableCell, TableData

from ingest_assets.core.errors import ConfigError
from ingest_assets.core.items import ItemContext
from ingest_assets.embedders.model_files import tokenizer_files
from ingest_assets.settings.chunks import ChunkOptions, resolve_options
from ingest_assets.stages.chunks.cutter import Cutter
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
    return Cutter(tokenizer_of(kind), resolve_options(ChunkOptions(max_tokens=max_tokens)))


@pytest.mark.parametrize("name", HUGE)
def test_a_text_far_past_the_limit_is_cut_within_it(name: str) -> None:
    """Every character except blanks is in some chunk, in order."""
    cutter = cutter_for()

    pieces, _ = cutter.pieces(text_only(HUGE[name]))

    assert max(cutter.count(piece.contextualized) for piece in pieces) <= 254
    assert "".join("".join(piece.text.split()) for piece in pieces) == "".join(HUGE[name].split())


def test_a_huge_cell_is_cut_within_the_limit() -> None:
    """With both ways of writing tables."""
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
    """Those that cannot be counted word by word."""
    cutter = cutter_for(kind, 64)

    pieces, _ = cutter.pieces(text_only("x1y2" * 3000, "漢字仮名交じり文" * 300, "The cable. " * 500))

    assert max(cutter.count(piece.contextualized) for piece in pieces) <= 64


Rows = Callable[..., tuple[list[dict[str, Any]], ItemContext]]


@pytest.fixture
def rows(doctags_table: Callable[..., Table], tmp_path: Path) -> Rows:
    """Return the stage's rows of a document, and its counters."""

    def run(document: DoclingDocument, stage: ChunksStage) -> tuple[list[dict[str, Any]], ItemContext]:
        (candidate,) = stage.candidates(table := doctags_table({"docs:a": document}), admitting(table))
        context = ItemContext()
        return stage.rows(item_of(stage, candidate, tmp_path), context).to_pylist(), context

    return run


def test_a_chunk_without_a_visible_character_is_left_out_and_counted(rows: Rows) -> None:
    """No search could find it, and its vector would have no meaning."""
    stage = ChunksStage(ChunkOptions(max_tokens=16, merge_peers=False))

    made, context = rows(text_only("\x00\x01\u200b", "The cable.", "\x02\x03"), stage)

    assert [(row["ordinal"], row["text"], row["start_offset"]) for row in made] == [(0, "The cable.", 0)]
    assert context.counts == {"chunks_left_out": 2}


def test_a_document_of_control_characters_keeps_its_chunk(rows: Rows) -> None:
    """A document always has at least one row."""
    found, context = rows(text_only("\x00\x01\x02"), ChunksStage())

    assert (len(found), context.counts) == (1, {})


def test_offsets_do_not_count_overlaps(rows: Rows) -> None:
    """An overlap is before the chunk's own text, and is not counted twice."""
    stage = ChunksStage(ChunkOptions(max_tokens=48, overlap_tokens=12))
    chunks, _ = rows(text_only(" ".join(f"w{number}" for number in range(200))), stage)

    sizes = [after["start_offset"] - row["start_offset"] for row, after in pairwise(chunks)]
    overlaps = [row["text"][: len(row["text"]) - size] for row, size in zip(chunks, sizes, strict=False)]
    assert overlaps[0] == ""
    assert all(
        text and before["text"].endswith(text.strip())
        for text, before in zip(overlaps[1:], chunks, strict=False)
    )
    assert max(row["tokens"] for row in chunks) <= 48


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, r"has no tokenizer\.json"), ("{", "cannot be used"), ("[]", "not a JSON object")],
)
def test_a_folder_without_a_tokenizer_is_rejected(tmp_path: Path, content: str | None, message: str) -> None:
    """With one line that names the folder."""
    if content is not None:
        (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")

    with pytest.raises(ConfigError, match=message):
        tokenizer_files(str(tmp_path))
