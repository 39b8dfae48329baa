"""Reading of earlier stages' tables: row numbers for the plan, and the rows themselves on the worker."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ingest_assets.core.errors import ContractBroken, ItemError
from ingest_assets.core.items import WorkItem
from ingest_assets.stages.base import Candidate
from ingest_assets.storage.parquet import RowReader
from ingest_assets.storage.table import Table, row_offsets

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument

# Items refer to rows by number, and a table that was replaced after planning has other rows there. So each
# read checks that the rows belong to the item.


def converted_documents(doctags: Table) -> Iterator[Candidate]:
    """Yield a candidate per converted document, with its row number; the cost is its number of characters."""
    for path in doctags.paths:
        table = Table(doctags.asset, (path,))
        frame = table.read(lambda rows: rows.select("doc_id", "fingerprint", "chars"))
        for number, (doc_id, fingerprint, chars) in enumerate(frame.iter_rows()):
            yield Candidate(doc_id, fingerprint, {"row": number}, (str(path),), chars)


def documents_with_text(doctags: Table) -> Iterator[Candidate]:
    """Yield a candidate per converted document with text; a search could not find the others."""
    return (candidate for candidate in converted_documents(doctags) if candidate.cost_hint > 0)


def read_doctags(item: WorkItem, columns: Sequence[str]) -> dict[str, Any]:
    """Return these columns of a converted document's row."""
    with closing(RowReader(Path(item.input_paths[0]), ["doc_id", *columns])) as reader:
        row: dict[str, Any] = reader.read(item.meta["row"], 1).to_pylist()[0]
    if row["doc_id"] != item.item_id:
        raise ContractBroken(
            f"Expected the doctags of {item.item_id!r}, found {row['doc_id']!r}; run `ingest all` again."
        )
    return row


def read_document(item: WorkItem) -> "DoclingDocument":
    """Return the Docling document of a converted document."""
    from ingest_assets.stages.chunks.fast_document import parse_document

    return parse_document(read_doctags(item, ["document"])["document"])


IDENTITY = ["chunk_id", "doc_id", "ordinal"]


def chunked_documents(chunks: Table) -> Iterator[Candidate]:
    """Yield a candidate per chunked document, with the row numbers of its chunks."""
    for path, footer in chunks.footers.items():
        offsets = row_offsets(footer.items)
        for doc_id, record in footer.items.items():
            meta = {"row": offsets[doc_id], "rows": record.rows}
            yield Candidate(doc_id, record.fingerprint, meta, (str(path),), record.rows)


def read_chunks(item: WorkItem) -> pa.Table:
    """Return the ids and contextualized texts of one document's chunks."""
    with closing(RowReader(Path(item.input_paths[0]), [*IDENTITY, "contextualized"])) as reader:
        rows = reader.read(item.meta["row"], item.meta["rows"])
    if set(rows["doc_id"].to_pylist()) != {item.item_id}:
        raise ContractBroken(
            f"The chunks of {item.item_id!r} changed while they were read; run `ingest all` again."
        )
    return rows


def with_chunk_id(error: ItemError, chunk_ids: Sequence[str]) -> ItemError:
    """Return an embedder's error with the chunk id in place of the index of the text it is about."""
    index = error.detail.get("index")
    if not isinstance(index, int) or not 0 <= index < len(chunk_ids):
        return error
    detail = {key: value for key, value in error.detail.items() if key != "index"}
    return type(error)(f"Chunk {chunk_ids[index]}: {error}", detail={**detail, "chunk_id": chunk_ids[index]})
