"""The sparse family is part of the graph if a model is configured."""

import json
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from ingest_assets.app.graph import GRAPH, graph_of, stages_between
from ingest_assets.app.home import Home
from ingest_assets.core.errors import ConfigError
from ingest_assets.core.schemas import SPARSE as SPARSE_SPEC
from ingest_assets.defs.build import build_definitions
from ingest_assets.settings.embeddings import EmbeddingOptions, SparseOptions
from ingest_assets.settings.tree import Settings
from ingest_assets.stages.sparse import faulty_weights
from ingest_assets.storage.table import Table, open_table
from ingest_tests.app.tables import put
from ingest_tests.conftest import Command, write_notes
from ingest_tests.embedders.tiny_splade import write_model
from ingest_tests.rows import blank_rows
from ingest_tests.runs import run_batches
from ingest_tests.weights import weights

SPARSE = dg.AssetKey(["embeddings", "sparse"])


def keys() -> set[dg.AssetKey]:
    """Return the asset keys in Dagster."""
    return set(build_definitions().resolve_asset_graph().get_all_asset_keys())


def test_without_a_model_there_is_no_sparse_stage(home: Home) -> None:
    """All other stages exist."""
    assert "sparse" not in home.graph
    assert set(GRAPH) - set(graph_of(Settings())) == {"sparse"}
    assert SPARSE not in keys()


def test_with_a_model_there_is_an_asset_with_its_checks(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the chunks, in the job of the embeddings."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights())
    config = {"architectures": ["BertForMaskedLM"], "vocab_size": 9, "max_position_embeddings": 64}
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.setenv("INGEST_EMBEDDINGS__SPARSE__MODEL", str(folder))

    definitions = build_definitions()
    graph = definitions.resolve_asset_graph()
    job = definitions.resolve_job_def("embeddings_only")

    assert graph.get(SPARSE).parent_keys == {dg.AssetKey("chunks")}
    checks = {key.name for key in graph.get_check_keys_for_assets({SPARSE})}
    assert {"every_chunk_has_a_vector", "weights_are_positive_numbers", "ids_are_unique"} <= checks
    assert "embeddings__sparse" in {node.name for node in job.nodes}


def test_a_missing_model_is_refused_at_the_start(home: Home) -> None:
    """In one line that names the setting."""
    wanted = EmbeddingOptions(sparse=SparseOptions(model="missing/missing"))
    asking = Home(home.layout, home.settings.model_copy(update={"embeddings": wanted}))

    with pytest.raises(ConfigError, match=r"^embeddings.sparse.model: 'missing/missing' is neither"):
        _ = asking.stages


def test_unsorted_entries_and_zero_weights_are_named(tmp_path: Path) -> None:
    """A vector without entries is valid."""
    rows = {
        "good": ([1, 4], [0.5, 2.0]),
        "empty": ([], []),
        "twice": ([4, 4], [1.0, 1.0]),
        "back": ([4, 1], [1.0, 1.0]),
        "beyond": ([9], [1.0]),
        "zero": ([1], [0.0]),
        "nan": ([1], [float("nan")]),
        "short": ([1, 2], [1.0]),
    }
    kinds = {"chunk_id": pl.String, "indices": pl.List(pl.UInt32), "values": pl.List(pl.Float32)}
    columns = zip(*((name, *vector) for name, vector in rows.items()), strict=True)
    pl.DataFrame(dict(zip(kinds, map(list, columns), strict=True)), schema=kinds).write_parquet(
        tmp_path / "rows.parquet"
    )

    found = faulty_weights(Table("embeddings/sparse", (tmp_path / "rows.parquet",)), 9)

    assert set(found) == rows.keys() - {"good", "empty"}


@pytest.mark.slow
def test_the_whole_graph_runs_with_sparse_vectors(tmp_path: Path) -> None:
    """From documents to vectors with the command; status, plan and a second run include the stage."""
    command = Command(tmp_path / "home")
    command.home.mkdir()
    write_model(command.home / "tiny-splade")
    (command.home / "ingest.toml").write_text('[embeddings.sparse]\nmodel = "tiny-splade"\ntop_k = 20\n')

    first = command.json("all", "--input", write_notes(tmp_path / "notes"))
    status = command.json("status")
    plan = command.json("plan")
    again = command.json("all")

    rows = pl.read_parquet(command.home / "data/embeddings/sparse/*.parquet")
    assert first["stages"]["sparse"]["succeeded"] == 3
    assert first["sparse"] == first["chunks"] == rows.height
    assert rows["indices"].list.len().max() <= 20
    assert "sparse" in json.dumps(status)
    assert {line["run"] for line in plan["stages"]} == {0}
    assert again["stages"]["sparse"]["skipped"] == 3
    assert (command.home / "data/lexical_stats/corpus.parquet").is_file()


@pytest.mark.graph
def test_a_deleted_document_leaves_the_sparse_table_even_without_a_model(home: Home, watched: Path) -> None:
    """No run writes that table any more, but a deleted document must not be found."""
    home.scan()
    until_chunks = stages_between("documents", "chunks")
    run_batches(home, until_chunks, {}, reason="test")
    (batch,) = home.ledger.batches()
    documents = sorted(home.table("chunks", batch).records)
    put(home, SPARSE_SPEC, batch, {doc: blank_rows(SPARSE_SPEC, doc_id=doc) for doc in documents})
    (watched / "feeding.md").unlink()
    home.scan()

    run_batches(home, until_chunks, {}, reason="test")

    left = open_table(home.layout, SPARSE_SPEC.asset, [batch])
    assert sorted(left.records) == [doc for doc in documents if doc != "notes:feeding.md"]
    assert len(left.records) == 2
