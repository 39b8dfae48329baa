"""Chunks stay within their budget, lose nothing, and have their position."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from docling_core.types.doc import DoclingDocument

from ingest_assets.core.errors import ContractBroken
from ingest_assets.core.identity import chunk_id
from ingest_assets.settings.chunks import ChunkOptions
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_assets.storage.table import Table
from ingest_tests.stages.conftest import CONTEXT, admitting, bridge, item_of

SMALL = ChunksStage(ChunkOptions(max_tokens=48))
MakeTable = Callable[..., Table]


def chunk(stage: ChunksStage, table: Table, doc_id: str, home: Path) -> pa.Table:
    """The chunks of one document of a table."""
    (candidate,) = [found for found in stage.candidates(table, admitting(table)) if found.item_id == doc_id]
    return stage.rows(item_of(stage, candidate, home), CONTEXT)


def test_a_document_becomes_chunks_under_their_headings(doctags_table: MakeTable, tmp_path: Path) -> None:
    """The contextualized text, which is embedded, begins with the headings."""
    rows = chunk(ChunksStage(), doctags_table({"docs:a": bridge()}), "docs:a", tmp_path).to_pylist()

    assert [row["headings"] for row in rows] == [["The bridge", "Inspection"], ["The bridge", "Repairs"]]
    assert all(row["contextualized"].endswith(row["text"]) for row in rows)
    assert all(heading in row["contextualized"] for row in rows for heading in row["headings"])
    assert "railing was repaired" in rows[1]["text"]
    assert all(row["item_refs"] for row in rows)


def test_chunks_are_numbered_and_identified_within_their_document(
    doctags_table: MakeTable, tmp_path: Path
) -> None:
    """Ids are unique, and offsets count the characters before."""
    rows = chunk(SMALL, doctags_table({"docs:a": bridge()}), "docs:a", tmp_path).to_pylist()

    assert len(rows) > 3
    assert [row["ordinal"] for row in rows] == list(range(len(rows)))
    assert [row["chunk_id"] for row in rows] == [
        chunk_id("docs:a", row["ordinal"], row["text"]) for row in rows
    ]
    assert len({row["chunk_id"] for row in rows}) == len(rows)
    assert [row["start_offset"] for row in rows] == [
        sum(len(before["text"]) for before in rows[:ordinal]) for ordinal in range(len(rows))
    ]


def test_a_documents_chunks_do_not_depend_on_its_neighbours(doctags_table: MakeTable, tmp_path: Path) -> None:
    """They do not depend on its row number either, nor on how often it is chunked."""
    alone = chunk(SMALL, doctags_table({"docs:b": bridge()}), "docs:b", tmp_path)
    crowd = doctags_table({"docs:a": bridge(5), "docs:b": bridge(), "docs:c": bridge(1)}, "crowd")

    assert chunk(SMALL, crowd, "docs:b", tmp_path).equals(alone)
    assert chunk(SMALL, crowd, "docs:b", tmp_path).equals(alone)


def test_documents_without_text_are_not_planned(doctags_table: MakeTable) -> None:
    """A search could not find them. The others keep their row numbers and fingerprints."""
    table = doctags_table({"docs:a": bridge(), "docs:b": DoclingDocument(name="none"), "docs:c": bridge()})

    found = list(ChunksStage().candidates(table, admitting(table)))

    assert [(c.item_id, c.input_fingerprint, c.meta["row"]) for c in found] == [
        ("docs:a", "fingerprint of docs:a", 0),
        ("docs:c", "fingerprint of docs:c", 2),
    ]


def test_documents_that_were_not_admitted_are_not_planned(doctags_table: MakeTable) -> None:
    """Rejected documents keep their verdict and have no chunks; nor do documents without a verdict."""
    table = doctags_table({"docs:a": bridge(), "docs:b": bridge(), "docs:c": bridge()})
    (path,) = admitting(table).paths
    verdicts = pl.DataFrame({"doc_id": ["docs:a", "docs:b"], "admitted": [False, True]})
    verdicts.write_parquet(path)

    assert [c.item_id for c in SMALL.candidates(table, Table("admission", (path,)))] == ["docs:b"]


def test_a_row_that_moved_since_the_plan_is_rejected(doctags_table: MakeTable, tmp_path: Path) -> None:
    """Chunks with another document's text would make every search wrong."""
    table = doctags_table({"docs:a": bridge(), "docs:b": bridge()})
    first, second = SMALL.candidates(table, admitting(table))
    item = item_of(SMALL, replace(first, meta=second.meta), tmp_path)

    with pytest.raises(ContractBroken, match=r"Expected the doctags of 'docs:a', found 'docs:b'"):
        SMALL.rows(item, CONTEXT)
