"""What a stage reads of the tables above it: the plan's references, and the rows where an item runs."""

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

# Rows are found by their numbers, and a table that was replaced meanwhile has others there. So whoever reads
# rows makes sure that they are the item's.


def converted_documents(doctags: Table) -> Iterator[Candidate]:
    """One per converted document, with the row it stands in; its characters are its cost."""
    for path in doctags.paths:
        table = Table(doctags.asset, (path,))
        frame = table.read(lambda rows: rows.select("doc_id", "fingerprint", "chars"))
        for number, (doc_id, fingerprint, chars) in enumerate(frame.iter_rows()):
            yield Candidate(doc_id, fingerprint, {"row": number}, (str(path),), chars)


def documents_with_text(doctags: Table) -> Iterator[Candidate]:
    """One per converted document that has text; one without has nothing to be found by."""
    return (candidate for candidate in converted_documents(doctags) if candidate.cost_hint > 0)


def read_doctags(item: WorkItem, columns: Sequence[str]) -> dict[str, Any]:
    """These columns of a converted document's row."""
    with closing(RowReader(Path(item.input_paths[0]), ["doc_id", *columns])) as reader:
        row: dict[str, Any] = reader.read(item.meta["row"], 1).to_pylist()[0]
    if row["doc_id"] != item.item_id:
        raise ContractBroken(
            f"Expected the doctags of {item.item_id!r}, found {row['doc_id']!r}; run the batch again."
        )
    return row


def read_document(item: WorkItem) -> "DoclingDocument":
    """The Docling document of a converted document."""
    from ingest_assets.stages.chunks.fast_document import document_from

    return document_from(read_doctags(item, ["document"])["document"])


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
    with closing(RowReader(Path(item.input_paths[0]), [*IDENTITY, "contextualized"])) as reader:
        rows = reader.read(item.meta["row"], item.meta["rows"])
    if set(rows["doc_id"].to_pylist()) != {item.item_id}:
        raise ContractBroken(
            f"The chunks of {item.item_id!r} moved while they were read; run the batch again."
        )
    return rows


def of_chunk(error: ItemError, chunk_ids: Sequence[str]) -> ItemError:
    """A model's error about one of its texts, by index, as one that says which chunk that is."""
    index = error.detail.get("index")
    if not isinstance(index, int) or not 0 <= index < len(chunk_ids):
        return error
    detail = {key: value for key, value in error.detail.items() if key != "index"}
    return type(error)(f"Chunk {chunk_ids[index]}: {error}", detail={**detail, "chunk_id": chunk_ids[index]})
