"""Tables for tests, written into a home."""

from collections.abc import Sequence

import pyarrow as pa

from ingest_assets.app.home import Home
from ingest_assets.core.errors import StageError
from ingest_assets.core.schemas import CHUNKS, TableSpec, dense_spec
from ingest_assets.storage.parquet import Failure
from ingest_assets.storage.table import Commit, Parts, commit

BATCHES = ("2026-01-01-0001", "2026-01-01-0002")


def chunk_rows(doc_id: str, ids: list[str]) -> pa.Table:
    """Return chunks with these ids."""
    rows = [
        {
            "chunk_id": chunk,
            "doc_id": doc_id,
            "ordinal": ordinal,
            "text": f"text of {chunk}",
            "contextualized": f"text of {chunk}",
            "headings": [],
            "captions": [],
            "pages": [],
            "item_refs": [],
            "tokens": 3,
            "start_offset": 0,
        }
        for ordinal, chunk in enumerate(ids)
    ]
    return pa.Table.from_pylist(rows, schema=CHUNKS.schema)


def vector_rows(doc_id: str, vectors: dict[str, list[float]]) -> pa.Table:
    """Return dense rows of these chunks."""
    dim = len(next(iter(vectors.values())))
    rows = [
        {"chunk_id": chunk, "doc_id": doc_id, "ordinal": ordinal, "vector": vector, "norm": 1.0}
        for ordinal, (chunk, vector) in enumerate(vectors.items())
    ]
    return pa.Table.from_pylist(rows, schema=dense_spec(dim).schema)


def _lost(stage: str, item: str) -> StageError:
    return StageError(
        stage=stage, item_id=item, category="input", code="E_TEST", message="Lost.", retryable=False
    )


def put(
    home: Home, spec: TableSpec, batch: str, tables: dict[str, pa.Table], failures: Sequence[str] = ()
) -> None:
    """Commit a table with these items' rows and failures."""
    for item, rows in tables.items():
        Parts(home.layout, spec, batch).write(item, f"print of {item}", rows)
    lost = {item: Failure(f"print of {item}", _lost(spec.asset, item)) for item in failures}
    prints = {item: f"print of {item}" for item in (*tables, *failures)}
    commit(home.layout, Commit(spec, batch, "1", "config", prints, failures=lost))
