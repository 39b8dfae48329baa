"""What every embedding family reads: the chunks of one document, an item each."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from ingest_assets.model.errors import ContractBroken
from ingest_assets.model.items import WorkItem
from ingest_assets.stages.stage import Candidate
from ingest_assets.storage.merging import row_offsets
from ingest_assets.storage.parquet import RowReader
from ingest_assets.storage.tables import Table

IDENTITY = ["chunk_id", "doc_id", "ordinal"]


def chunked_documents(chunks: Table) -> Iterator[Candidate]:
    """One candidate per chunked document, with the rows its chunks stand in."""
    for path, footer in chunks.footers.items():
        offsets = row_offsets(footer.items)
        for doc_id, record in footer.items.items():
            meta = {"row": offsets[doc_id], "rows": record.rows}
            yield Candidate(doc_id, record.fingerprint, meta, (str(path),), record.rows)


def read_chunks(item: WorkItem) -> pa.Table:
    """Ids and contextualized text of one document's chunks."""
    reader = RowReader(Path(item.input_paths[0]), [*IDENTITY, "contextualized"])
    try:
        rows = reader.read(item.meta["row"], item.meta["rows"])
    finally:
        reader.close()
    require_rows_of(item, rows)
    return rows


def require_rows_of(item: WorkItem, rows: pa.Table) -> None:
    """Rows are found by their numbers, and a table that was replaced meanwhile has others there."""
    if set(rows["doc_id"].to_pylist()) != {item.item_id}:
        raise ContractBroken(
            f"The chunks of {item.item_id!r} moved while they were read; run the batch again."
        )
