"""Vectors into Parquet: the product's way against Python lists, both from the same float32 matrix."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.core.schemas import dense_spec
from ingest_assets.storage.parquet import write_parquet
from ingest_tests.bench.comparing import compared
from ingest_tests.bench.figures import Figure, Size

VECTORS = 100_000
DIM = 384


def measure(size: Size) -> list[Figure]:
    """Time writing, including the flush to disk on our side; then read and compare every bit."""
    count = size.of(VECTORS)
    vectors = np.random.default_rng(7).standard_normal((count, DIM), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = _ids(count)
    with tempfile.TemporaryDirectory() as folder:
        lists, columns = Path(folder) / "lists.parquet", Path(folder) / "columns.parquet"
        plain = ids.to_pylist()
        found = compared(
            lambda: _lists(lists, plain, vectors), lambda: _columns(columns, ids, vectors), rounds=5
        )
        wrong = [_other_rows(path, ids, vectors) for path in (lists, columns)]
        ratio = columns.stat().st_size / lists.stat().st_size
    assert wrong[0] == 0, "the naive way lost something"
    return [
        # No bound: the former one (10) needed row groups encoded in several threads.
        found.figure(f"{count:,} x {DIM}: ratio"),
        Figure("rows that came back otherwise", wrong[1], "rows", "=", 0),
        Figure("size of the file", ratio, "of lists'"),
    ]


def _ids(count: int) -> pa.Table:
    """Return the ids as the dense stage has them: columns of the chunks table."""
    names = pa.array([f"{number:032x}" for number in range(count)])
    columns = {"chunk_id": names, "doc_id": pa.array(["a"] * count), "ordinal": pa.array(range(count))}
    return pa.table(columns)


def _lists(path: Path, ids: list[dict[str, Any]], vectors: np.ndarray) -> None:
    """Write without Arrow: a dictionary for each row, a list for each vector."""
    rows = [known | {"vector": v.tolist(), "norm": 1.0} for known, v in zip(ids, vectors, strict=True)]
    pq.write_table(pa.Table.from_pylist(rows), path)


def _columns(path: Path, ids: pa.Table, vectors: np.ndarray) -> None:
    """Write like the dense stage and the commit, including the flush to disk."""
    spec = dense_spec(DIM)
    kind = spec.schema.field("vector").type
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), type=kind)
    norms = pa.array(np.ones(len(vectors), dtype=np.float32))
    rows = ids.append_column("vector", column).append_column("norm", norms)
    write_parquet(path, spec, [rows.cast(spec.schema)], {"family": "dense"})


def _other_rows(path: Path, ids: pa.Table, vectors: np.ndarray) -> int:
    """Count rows whose id or vector differs from what was written."""
    table = pq.read_table(path).combine_chunks()
    if table.num_rows != len(vectors):
        return len(vectors)
    found = table["vector"].combine_chunks().flatten().to_numpy().astype(np.float32)
    same = (found.view(np.uint32) == vectors.ravel().view(np.uint32)).reshape(-1, DIM).all(axis=1)
    named = np.array(table["chunk_id"].to_pylist()) == np.array(ids["chunk_id"].to_pylist())
    return int(len(vectors) - (same & named).sum())
