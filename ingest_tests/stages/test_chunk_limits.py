"""Documents that are awkward to cut: within the budget, and without losing a word."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from docling_core.types.doc import DocItemLabel, DoclingDocument, TableCell, TableData

from ingest_assets.embedders.model_files import load_tokenizer
from ingest_assets.embedders.model_layout import read_layout
from ingest_assets.settings.chunks import ChunkOptions, Tables
from ingest_assets.settings.embeddings import PACKAGED_MODEL
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_assets.storage.table import Table
from ingest_tests.stages.conftest import CONTEXT, admitting, bridge, item_of

SMALL = ChunksStage(ChunkOptions(max_tokens=48))
MakeTable = Callable[..., Table]
Chunk = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def chunk(doctags_table: MakeTable, tmp_path: Path) -> Chunk:
    """Chunk a document."""

    def run(document: DoclingDocument, stage: ChunksStage = SMALL) -> list[dict[str, Any]]:
        (candidate,) = stage.candidates(table := doctags_table({"docs:a": document}), admitting(table))
        rows: list[dict[str, Any]] = stage.rows(item_of(stage, candidate, tmp_path), CONTEXT).to_pylist()
        return rows

    return run


def squeezed(text: str) -> str:
    """A text without white space, which cutting can remove or add."""
    return "".join(text.split())


def text_only(text: str) -> DoclingDocument:
    """A document of one paragraph."""
    document = DoclingDocument(name="x")
    document.add_text(DocItemLabel.TEXT, text)
    return document


def headed(*headings: str, text: str = "") -> DoclingDocument:
    """A document of headings, with an optional paragraph below them."""
    document = DoclingDocument(name="x")
    for heading in headings:
        document.add_heading(heading)
    if text:
        document.add_text(DocItemLabel.TEXT, text)
    return document


LONG_HEADING = "A very long heading about cables " * 20


@pytest.mark.parametrize(
    "document",
    [
        bridge(),
        text_only("x1y2" * 600),
        text_only("漢字仮名交じり文" * 60),
        text_only("😀 " * 300),
        headed(LONG_HEADING, text="The text below it. " * 20),
    ],
    ids=["prose", "one long word", "no spaces", "emoji", "long heading"],
)
def test_no_chunk_is_larger_than_its_budget_and_no_word_is_lost(
    chunk: Chunk, document: DoclingDocument
) -> None:
    """Headings included, for every document."""
    rows = chunk(document)

    body = [text.text for text in document.texts if text.label.value in {"text", "list_item"}]
    found = "".join(squeezed(row["text"]) for row in rows)
    assert max(row["tokens"] for row in rows) <= 48
    assert all(squeezed(text) in found for text in body)


@pytest.mark.parametrize(
    "headings", [("Bees",), ("Bees", "Wasps"), (LONG_HEADING,), (LONG_HEADING, LONG_HEADING + "again")]
)
def test_a_document_of_headings_only_has_chunks_of_them(chunk: Chunk, headings: tuple[str, ...]) -> None:
    """Also when a heading is longer than a chunk."""
    rows = chunk(headed(*headings))

    found = "".join(squeezed(text) for row in rows for text in [*row["headings"], row["text"]])
    assert all(squeezed(heading) in found for heading in headings)
    assert all(row["text"].strip() for row in rows)
    assert max(row["tokens"] for row in rows) <= 48


@pytest.mark.parametrize("tables", ["rows", "values"])
def test_a_table_longer_than_a_chunk_is_cut_without_noise(chunk: Chunk, tables: Tables) -> None:
    """Every value is in some chunk, and none begins with the rule of a Markdown table."""
    cells = [
        TableCell(
            text=f"row{row}col{column}",
            start_row_offset_idx=row,
            end_row_offset_idx=row + 1,
            start_col_offset_idx=column,
            end_col_offset_idx=column + 1,
            column_header=row == 0,
        )
        for row in range(12)
        for column in range(4)
    ]
    document = text_only("Before the table.")
    document.add_table(TableData(table_cells=cells, num_rows=12, num_cols=4))

    rows = chunk(document, ChunksStage(ChunkOptions(max_tokens=48, tables=tables)))

    found = "".join(squeezed(row["text"]) for row in rows)
    assert len(rows) > 2
    assert all(cell.text in found for cell in cells if not cell.column_header)
    assert [row["text"] for row in rows if row["text"].startswith("| - |")] == []


def test_the_model_reads_a_chunk_to_its_end(chunk: Chunk) -> None:
    """Special tokens count, too: text beyond the limit is in no vector."""
    tokenizer = load_tokenizer(PACKAGED_MODEL)

    rows = chunk(text_only("cable " * 1200), ChunksStage())

    longest = max(len(tokenizer(row["contextualized"])["input_ids"]) for row in rows)
    assert longest <= read_layout(PACKAGED_MODEL).max_tokens
