"""What must hold of the tables, as pure functions that name the offenders."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.model.items import WorkItem, is_current
from ingest_assets.storage.damage import naming_damage
from ingest_assets.storage.sets import UNKNOWN
from ingest_assets.storage.tables import Table, naming_damaged

_UNIT_TOLERANCE = 1e-4


def items_without_rows(items: Iterable[WorkItem], table: Table) -> list[str]:
    """Planned items that are neither done, by the predicate resume uses, nor recorded as failed."""
    records, failures = table.records, table.failures

    def is_answered(item: WorkItem) -> bool:
        failure = failures.get(item.item_id)
        has_failed = failure is not None and failure.fingerprint == item.fingerprint
        return has_failed or is_current(records.get(item.item_id), item.fingerprint)

    return [item.item_id for item in items if not is_answered(item)]


def without_later_changes(items: Iterable[WorkItem], table: Table) -> list[WorkItem]:
    """Leave out files that changed after the table was made: they are the next run's work, not a fault."""
    known = table.records.keys() | table.failures.keys()
    open_items = set(items_without_rows(kept := list(items), table))
    return [item for item in kept if item.item_id not in open_items or item.item_id not in known]


def repeated_keys(table: Table, key: str) -> list[str]:
    """Values of a key column that stand in more than one row."""
    counts = table.read(lambda rows: rows.group_by(key).agg(pl.len().alias("n")).filter(pl.col("n") > 1))
    return counts[key].sort().to_list()


def chunks_without_vector(chunks: Table, vectors: Table) -> tuple[list[str], list[str]]:
    """Chunks without a vector, those of failed documents aside, and vectors whose chunk is not there."""
    is_excused = pl.col("doc_id").is_in(list(vectors.failures))
    wanted = set(chunks.read(lambda rows: rows.filter(~is_excused).select("chunk_id")).to_series())
    found = set(vectors.read(lambda rows: rows.select("chunk_id")).to_series())
    return sorted(wanted - found), sorted(found - wanted)


def documents_without_verdict(doctags: Table, admission: Table) -> list[str]:
    """Converted documents that are neither judged nor recorded as failed, and verdicts on unknown ones."""
    answered = admission.records.keys() | admission.failures.keys()
    return sorted(doctags.records.keys() ^ answered)


def texts_admitted_twice(mine: Table, all_of_them: Table) -> list[list[str]]:
    """The admitted documents of each text of mine that more than one document is admitted with."""
    admitted = pl.col("admitted")
    texts = mine.scan().filter(admitted).select("text_hash").unique()
    alike = all_of_them.scan().filter(admitted).join(texts, on="text_hash", how="semi")
    counted = alike.group_by("text_hash").agg(pl.col("doc_id").sort()).filter(pl.col("doc_id").list.len() > 1)
    with naming_damaged(mine, all_of_them):
        return sorted(counted.collect()["doc_id"].to_list())


@dataclass(frozen=True, slots=True)
class VectorFaults:
    """Chunks whose vector breaks a rule."""

    dimension: str | None
    not_finite: list[str]
    not_unit: list[str]

    def is_empty(self) -> bool:
        return self.dimension is None and not self.not_finite and not self.not_unit


def faulty_vectors(table: Table, dim: int, *, is_unit: bool = True) -> VectorFaults:
    """Vectors of another dimension, with a NaN or infinity, or not of unit length where they should be."""
    wrong, not_finite, not_unit = None, [], []
    for path in table.paths:
        with naming_damage(path):
            kind = pq.read_schema(path).field("vector").type
        if not pa.types.is_fixed_size_list(kind) or kind.list_size != dim:
            wrong = f"{path.name} has {kind}, expected {dim} dimensions"
            continue
        with naming_damage(path):
            rows = pq.read_table(path, columns=["chunk_id", "vector"]).combine_chunks()
        vectors = _matrix(rows, dim)
        finite = np.isfinite(vectors).all(axis=1)
        norms = np.linalg.norm(vectors, axis=1)
        unit = np.abs(norms - 1) <= _UNIT_TOLERANCE if is_unit else norms > 0
        not_finite += rows.filter(pa.array(~finite))["chunk_id"].to_pylist()
        not_unit += rows.filter(pa.array(finite & ~unit))["chunk_id"].to_pylist()
    return VectorFaults(wrong, not_finite, not_unit)


def faulty_weights(table: Table, dim: int) -> list[str]:
    """Chunks with a weight that is no number above zero, or with entries that are not in order."""
    indices, values = pl.col("indices"), pl.col("values")
    is_number = pl.element().is_finite() & (pl.element() > 0)
    is_sound = (
        (indices.list.len() == values.list.len())
        & values.list.eval(is_number).list.all()
        & indices.list.eval(pl.element().cast(pl.Int64).diff().fill_null(1) > 0).list.all()
        & (indices.list.max().fill_null(0) < dim)
    )
    return table.read(lambda rows: rows.filter(~is_sound).select("chunk_id")).to_series().to_list()


def _matrix(rows: pa.Table, dim: int) -> np.ndarray:
    if rows.num_rows == 0:
        return np.empty((0, dim), dtype=np.float32)
    column = rows["vector"].chunk(0)
    return column.flatten().to_numpy(zero_copy_only=False).reshape(-1, dim)


def tables_of_another_set(table: Table) -> list[str]:
    """Files of a family that are not of the set that most of its files are of."""
    sets = {path: footer.extra.get("set", UNKNOWN) for path, footer in table.footers.items()}
    usual = Counter(sets.values()).most_common(1)
    return [f"{table.asset}/{path.name}" for path, found in sets.items() if found != usual[0][0]]


def failure_lines(table: Table) -> Mapping[str, str]:
    """Each failed document with its code and reason."""
    return {
        item: f"{failure.error.code}: {failure.error.message}" for item, failure in table.failures.items()
    }
