"""Vectors into Parquet: the product's way against Python lists, both from the same float32 matrix."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.model.schemas import dense_spec
from ingest_assets.storage.parquet import write_parquet
from ingest_tests.bench.comparing import compared
from ingest_tests.bench.figures import Figure, Size

QUICK = 0.4
VECTORS = 50_000
DIM = 384


def measure(size: Size) -> list[Figure]:
    """Seconds to a file that is on the disk; then every bit of it is read again."""
    count = size.of(VECTORS)
    vectors = np.random.default_rng(7).standard_normal((count, DIM), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"{number:032x}" for number in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        lists, columns = Path(folder) / "lists.parquet", Path(folder) / "columns.parquet"
        found = compared(lambda: _lists(lists, ids, vectors), lambda: _columns(columns, ids, vectors))
        wrong = [_other_rows(path, ids, vectors) for path in (lists, columns)]
        ratio = columns.stat().st_size / lists.stat().st_size
    assert wrong[0] == 0, "the naive way lost something"
    return [
        found.figure(f"{count:,} x {DIM}: ratio", ">=", 10),
        Figure("rows that came back otherwise", wrong[1], "rows", "=", 0),
        Figure("size of the file", ratio, "of lists'"),
    ]


def _lists(path: Path, ids: Sequence[str], vectors: np.ndarray) -> None:
    """As one writes it without thinking of Arrow: a dictionary for each row, a list for each vector."""
    rows = [
        {"chunk_id": chunk_id, "doc_id": "a", "ordinal": number, "vector": vector.tolist(), "norm": 1.0}
        for number, (chunk_id, vector) in enumerate(zip(ids, vectors, strict=True))
    ]
    schema = pa.schema([*_plain_fields(), pa.field("vector", pa.list_(pa.float32()))])
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def _plain_fields() -> list[Any]:
    spec = dense_spec(DIM)
    return [field for field in spec.schema if field.name != "vector"]


def _columns(path: Path, ids: Sequence[str], vectors: np.ndarray) -> None:
    """As the dense stage and the commit do it, flush to the disk included."""
    spec = dense_spec(DIM)
    kind = spec.schema.field("vector").type
    columns = {
        "chunk_id": pa.array(ids),
        "doc_id": pa.array(["a"] * len(ids)),
        "ordinal": pa.array(np.arange(len(ids), dtype=np.int32)),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), type=kind),
        "norm": pa.array(np.ones(len(ids), dtype=np.float32)),
    }
    write_parquet(path, spec, [pa.table(columns).cast(spec.schema)], {"family": "dense"})


def _other_rows(path: Path, ids: Sequence[str], vectors: np.ndarray) -> int:
    """Rows whose id or any bit of whose vector is not what was written."""
    table = pq.read_table(path).combine_chunks()
    column = table["vector"].combine_chunks()
    found = column.flatten().to_numpy().reshape(-1, DIM).view(np.uint32)
    same = (
        (found == vectors.view(np.uint32)).all(axis=1) if len(found) == len(vectors) else np.zeros(len(ids))
    )
    named = np.array(table["chunk_id"].to_pylist()) == np.array(ids) if len(same) == table.num_rows else same
    return int(len(ids) - (same * named).sum())
