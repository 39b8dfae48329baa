"""Small tables to write: every column kind the real ones have, in groups of three rows."""

import pyarrow as pa

from ingest_assets.core.errors import ItemError, StageError
from ingest_assets.core.schemas import TableSpec
from ingest_assets.storage.parquet import Failure
from ingest_assets.storage.table import Commit

DIM = 4
BATCH = "2024-05-01-0001"
SPEC = TableSpec(
    asset="embeddings/mixed",
    key=("doc_id", "ordinal"),
    rows_per_group=3,
    schema=pa.schema(
        [
            pa.field("doc_id", pa.string(), nullable=False),
            pa.field("ordinal", pa.int32(), nullable=False),
            pa.field("title", pa.string()),
            pa.field("body", pa.large_string(), nullable=False),
            pa.field("terms", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
            pa.field(
                "vector", pa.list_(pa.field("element", pa.float32(), nullable=False), DIM), nullable=False
            ),
        ]
    ),
    descriptions={},
    dictionary=("doc_id", "terms.list.element"),
    byte_stream_split=("vector.list.element",),
)


def rows_of(item: str, version: int, rows: int) -> pa.Table:
    """Return rows that depend only on the arguments, with nulls and empty lists."""
    return pa.Table.from_pylist(
        [
            {
                "doc_id": item,
                "ordinal": ordinal,
                "title": None if (ordinal + version) % 3 else f"{item} {version}",
                "body": f"{item}·{version}·{ordinal} " * (version + 1),
                "terms": [f"t{n}" for n in range((ordinal + version) % 4)],
                "vector": [version, ordinal / 7, -len(item), 1e-9 * ordinal],
            }
            for ordinal in range(rows)
        ],
        schema=SPEC.schema,
    )


def fingerprint_of(version: int, rows: int) -> str:
    """Return the fingerprint of `rows_of` with these arguments."""
    return f"v{version}r{rows}"


def failure(item: str, fingerprint: str) -> Failure:
    """An item that could not be read."""
    return Failure(fingerprint, StageError.of(ItemError(f"{item} is broken"), stage="mixed", item_id=item))


def commit_of(
    items: dict[str, str], failures: dict[str, Failure] | None = None, config_hash: str = "config"
) -> Commit:
    """A commit of the mixed table."""
    return Commit(SPEC, BATCH, "1", config_hash, items, failures or {}, {"family": "mixed"})
