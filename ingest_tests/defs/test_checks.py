"""Checks that can fail: each predicate on tables that violate it."""

import math

import dagster as dg
import pytest

from ingest_assets.app.checks import (
    chunks_without_vector,
    documents_without_verdict,
    items_without_rows,
    repeated_keys,
    texts_admitted_twice,
)
from ingest_assets.app.home import Home
from ingest_assets.core.errors import TableDamaged
from ingest_assets.core.items import WorkItem
from ingest_assets.core.schemas import ADMISSION, CHUNKS, DOCTAGS, dense_spec
from ingest_assets.defs.build import build_definitions
from ingest_assets.defs.keys import batches
from ingest_assets.stages.dense import faulty_vectors
from ingest_assets.storage.table import Table
from ingest_tests.app.tables import BATCHES, chunk_rows, put, vector_rows
from ingest_tests.rows import blank_rows, zero_the_rows

BATCH = BATCHES[0]


def _table(home: Home, asset: str) -> Table:
    return Table(asset, (home.layout.table(asset, BATCH),))


def test_a_planned_document_without_rows_is_named(home: Home):
    """By the same predicate as resume: a row with an old fingerprint counts as no row."""
    put(home, CHUNKS, BATCH, {"done": chunk_rows("done", ["a"]), "stale": chunk_rows("stale", ["b"])})
    items = [
        WorkItem("done", "print of done"),
        WorkItem("stale", "a newer print"),
        WorkItem("absent", "print of absent"),
    ]

    assert items_without_rows(items, _table(home, "chunks")) == ["stale", "absent"]


def test_a_repeated_id_is_named(home: Home):
    """Of two rows with one id, only one could be found."""
    put(home, CHUNKS, BATCH, {"d": chunk_rows("d", ["a", "b"]), "e": chunk_rows("e", ["b"])})

    assert repeated_keys(_table(home, "chunks"), "chunk_id") == ["b"]


def test_chunks_without_vectors_and_vectors_without_chunks_are_named(home: Home):
    """Such chunks cannot be found, and such vectors find nothing."""
    put(home, CHUNKS, BATCH, {"d": chunk_rows("d", ["a", "b"])})
    put(home, dense_spec(2), BATCH, {"d": vector_rows("d", {"b": [1.0, 0.0], "c": [0.0, 1.0]})})

    assert chunks_without_vector(_table(home, "chunks"), _table(home, "embeddings/dense")) == (["a"], ["c"])


@pytest.mark.parametrize(
    ("vector", "not_finite", "not_unit"),
    [
        ([0.6, 0.8], [], []),
        ([0.6, 0.9], [], ["a"]),
        ([0.0, 0.0], [], ["a"]),
        ([math.nan, 1.0], ["a"], []),
        ([math.inf, 0.0], ["a"], []),
    ],
)
def test_invalid_vectors_are_named(home: Home, vector, not_finite, not_unit):
    """One such vector breaks every search."""
    put(home, dense_spec(2), BATCH, {"d": vector_rows("d", {"a": vector})})

    faults = faulty_vectors(_table(home, "embeddings/dense"), 2)

    assert (faults.dimension, faults.not_finite, faults.not_unit) == (None, not_finite, not_unit)


@pytest.mark.parametrize(("vector", "named"), [([3.0, 4.0], []), ([0.0, 0.0], ["a"])])
def test_vectors_can_have_any_length_without_normalization(home: Home, vector, named):
    """`normalize = false` keeps the model's lengths; length zero is still invalid."""
    put(home, dense_spec(2), BATCH, {"d": vector_rows("d", {"a": vector})})

    faults = faulty_vectors(_table(home, "embeddings/dense"), 2, is_unit=False)

    assert (faults.dimension, faults.not_finite, faults.not_unit) == (None, [], named)


def test_another_dimension_is_named(home: Home):
    """One table must never have vectors of two models."""
    put(home, dense_spec(2), BATCH, {"d": vector_rows("d", {"a": [1.0, 0.0]})})

    faults = faulty_vectors(_table(home, "embeddings/dense"), 384)

    assert "expected 384 dimensions" in faults.dimension


def test_an_empty_table_has_no_faults(home: Home):
    """All documents of a batch can be deleted."""
    put(home, dense_spec(2), BATCH, {})

    faults = faulty_vectors(_table(home, "embeddings/dense"), 2)

    assert (faults.dimension, faults.not_finite, faults.not_unit) == (None, [], [])


def test_documents_without_verdicts_and_verdicts_without_documents_are_named(home: Home):
    """Read documents = admitted + rejected; a document that failed in admission is accounted for."""
    put(home, DOCTAGS, BATCH, {doc: blank_rows(DOCTAGS, doc_id=doc) for doc in ("a", "b", "c")})
    verdicts = {doc: blank_rows(ADMISSION, doc_id=doc) for doc in ("a", "z")}
    put(home, ADMISSION, BATCH, verdicts, failures=("b",))

    found = documents_without_verdict(_table(home, "doctags"), _table(home, "admission"))

    assert found == ["c", "z"]


def test_a_text_that_is_admitted_twice_is_named_with_its_documents(home: Home):
    """Over all batches, but only for texts of the checked one; rejected copies are fine."""
    verdicts = {
        BATCHES[0]: {"a": ("one", True), "b": ("two", True), "c": ("two", False)},
        BATCHES[1]: {"d": ("one", True), "e": ("three", True), "f": ("three", True), "g": ("two", False)},
    }
    for batch, rows in verdicts.items():
        judged = {
            doc: blank_rows(ADMISSION, doc_id=doc, text_hash=text, admitted=admitted)
            for doc, (text, admitted) in rows.items()
        }
        put(home, ADMISSION, batch, judged)

    found = texts_admitted_twice(_table(home, "admission"), home.tables("admission"))

    assert found == [["a", "d"]]


def _checked(instance: dg.DagsterInstance, selection: dg.AssetSelection) -> dg.ExecuteInProcessResult:
    """Run a job of checks only, as the web UI does, and return the results."""
    job = dg.define_asset_job("only_checks", selection=selection)
    definitions = dg.Definitions.merge(build_definitions(), dg.Definitions(jobs=[job]))
    return definitions.resolve_job_def("only_checks").execute_in_process(
        instance=instance, tags={"dagster/partition": BATCH}, raise_on_error=False
    )


def test_one_broken_check_fails_the_step_and_hides_no_other(home: Home, instance: dg.DagsterInstance):
    """All checks of a table are one step; each still has a separate result."""
    for above in (DOCTAGS, ADMISSION):
        put(home, above, BATCH, {})
    put(home, CHUNKS, BATCH, {"d": chunk_rows("d", ["a", "a"])}, failures=["e"])
    instance.add_dynamic_partitions(batches.name, [BATCH])

    result = _checked(instance, dg.AssetSelection.checks_for_assets("chunks"))

    found = {
        check.check_name: (check.passed, check.blocking) for check in result.get_asset_check_evaluations()
    }
    assert not result.success
    assert found == {
        "every_planned_document_has_a_row": (True, True),
        "ids_are_unique": (False, True),
        "no_document_failed": (False, False),
    }


def test_a_check_can_be_run_alone(home: Home, instance: dg.DagsterInstance):
    """Even if another one would fail."""
    put(home, CHUNKS, BATCH, {"d": chunk_rows("d", ["a", "a"])}, failures=["e"])
    instance.add_dynamic_partitions(batches.name, [BATCH])
    key = dg.AssetCheckKey(dg.AssetKey("chunks"), "no_document_failed")

    result = _checked(instance, dg.AssetSelection.checks(key))

    (only,) = result.get_asset_check_evaluations()
    assert result.success
    assert (only.check_name, only.passed, only.severity) == (key.name, False, dg.AssetCheckSeverity.WARN)


def test_checks_of_unreadable_rows_fail(home: Home, instance: dg.DagsterInstance):
    """The check that reads them fails and names the file; those that need only the footer pass."""
    for above in (DOCTAGS, ADMISSION):
        put(home, above, BATCH, {})
    put(home, CHUNKS, BATCH, {"d": chunk_rows("d", ["a"])})
    instance.add_dynamic_partitions(batches.name, [BATCH])
    path = home.layout.table("chunks", BATCH)
    zero_the_rows(path)

    result = _checked(instance, dg.AssetSelection.checks_for_assets("chunks"))

    found = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert len(found) == 3
    assert {name for name, check in found.items() if not check.passed} == {"ids_are_unique"}
    assert f"{path} is damaged" in str(found["ids_are_unique"].metadata["first"].value)


def test_unreadable_vectors_are_reported_with_their_file(home: Home):
    """Whether the rows or the schema are damaged."""
    put(home, dense_spec(2), BATCH, {"d": vector_rows("d", {"a": [1.0, 0.0]})})
    path = home.layout.table("embeddings/dense", BATCH)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    with pytest.raises(TableDamaged, match="is damaged"):
        faulty_vectors(_table(home, "embeddings/dense"), 2)
