"""Deleted and changed documents are removed from a family's other sets too."""

from dataclasses import replace

import pyarrow as pa

from ingest_assets.core.layout import Layout
from ingest_assets.core.schemas import CHUNKS, dense_spec
from ingest_assets.storage.model_sets import prune
from ingest_assets.storage.parquet import read_footer
from ingest_assets.storage.table import Commit, Parts, Table, commit
from ingest_tests.app.tables import chunk_rows, vector_rows
from ingest_tests.storage.rows import BATCH, failure

OLD = replace(dense_spec(2), asset="embeddings/dense@old")


def put(layout: Layout, spec, tables: dict[str, pa.Table], failed: tuple[str, ...] = ()) -> Table:
    """Commit a table of these documents."""
    for item, rows in tables.items():
        Parts(layout, spec, BATCH).write(item, item, rows)
    failures = {item: failure(item, item) for item in failed}
    items = {item: item for item in (*tables, *failed)}
    result = commit(layout, Commit(spec, BATCH, "1", "config", items, failures, {"set": "old"}))
    return Table(spec.asset, (result.path,))


def vectors(doc_id: str, *chunks: str) -> pa.Table:
    """Rows of two dimensions."""
    return vector_rows(doc_id, {chunk: [1.0, 0.0] for chunk in chunks})


def test_deleted_and_changed_documents_are_removed_and_others_stay(layout: Layout) -> None:
    """A search must not return deleted documents, or vectors without a chunk."""
    documents = {"gone": vectors("gone", "g1"), "a": vectors("a", "a1", "a2"), "b": vectors("b", "b1", "b2")}
    put(layout, OLD, documents, failed=("a-failed", "b-failed"))
    chunks = put(
        layout,
        CHUNKS,
        {"a": chunk_rows("a", ["a1", "a2"]), "b": chunk_rows("b", ["b1", "new"])}
        | {"a-failed": chunk_rows("a-failed", ["f"])},
    )

    gone = prune(layout, replace(OLD, schema=dense_spec(3).schema), BATCH, chunks)

    left = Table(OLD.asset, (layout.table(OLD.asset, BATCH),))
    assert gone == ["gone", "b"]
    assert left.scan().collect()["chunk_id"].to_list() == ["a1", "a2"]
    assert (list(left.records), list(left.failures)) == (["a"], ["a-failed"])
    assert next(iter(left.footers.values())).extra["set"] == "old"


def test_the_active_set_keeps_documents_that_are_chunked_differently(layout: Layout) -> None:
    """After a switch to a model with another limit, the old vectors serve until the new ones are complete."""
    put(layout, OLD, {"gone": vectors("gone", "g1"), "b": vectors("b", "b1")}, failed=("f-gone",))
    chunks = put(layout, CHUNKS, {"b": chunk_rows("b", ["new"])})

    gone = prune(layout, OLD, BATCH, chunks, serves=True)

    left = Table(OLD.asset, (layout.table(OLD.asset, BATCH),))
    assert gone == ["gone"]
    assert left.scan().collect()["chunk_id"].to_list() == ["b1"]
    assert (list(left.records), list(left.failures)) == (["b"], [])


def test_a_table_with_nothing_to_remove_is_not_touched(layout: Layout) -> None:
    """Every run checks it."""
    chunks = put(layout, CHUNKS, {"a": chunk_rows("a", ["a1"])})
    path = put(layout, OLD, {"a": vectors("a", "a1")}).paths[0]
    before = path.stat().st_mtime_ns

    assert prune(layout, OLD, BATCH, chunks) == []
    assert path.stat().st_mtime_ns == before


def test_a_damaged_table_is_removed(layout: Layout) -> None:
    """Its content is unknown."""
    chunks = put(layout, CHUNKS, {"a": chunk_rows("a", ["a1"])})
    path = put(layout, OLD, {"gone": vectors("gone", "g1")}).paths[0]
    path.write_bytes(path.read_bytes()[:-9])

    prune(layout, OLD, BATCH, chunks)

    assert not path.exists()
    assert read_footer(path) is None
