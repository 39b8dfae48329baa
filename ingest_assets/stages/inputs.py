"""What a stage reads of the tables above it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ingest_assets.core.errors import ContractBroken, ItemError
from ingest_assets.core.items import WorkItem
from ingest_assets.stages.base import Candidate
from ingest_assets.storage.parquet import RowReader
from ingest_assets.storage.table import Table, row_offsets

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument


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


# Converted documents, as stages below doctags read them: the plan's references, and the document itself.


def documents_with_text(doctags: Table) -> Iterator[Candidate]:
    """One per converted document that has text; one without has nothing to be found by."""
    for path in doctags.paths:
        table = Table(doctags.asset, (path,))
        frame = table.read(lambda rows: rows.select("doc_id", "fingerprint", "chars"))
        for number, row in enumerate(frame.iter_rows(named=True)):
            if row["chars"] > 0:
                meta = {"row": number}
                yield Candidate(row["doc_id"], row["fingerprint"], meta, (str(path),), row["chars"])


def admitted(documents: Iterable[Candidate], admission: Table) -> Iterator[Candidate]:
    """Of these documents those that were admitted."""
    wanted = admission.read(lambda rows: rows.filter("admitted").select("doc_id")).to_series()
    inside = set(wanted)
    return (candidate for candidate in documents if candidate.item_id in inside)


def read_document(item: WorkItem) -> "DoclingDocument":
    """The Docling document of a candidate above."""
    from ingest_assets.stages.chunks.fast_document import document_from

    reader = RowReader(Path(item.input_paths[0]), ["doc_id", "document"])
    try:
        row = reader.read(item.meta["row"], 1).to_pylist()[0]
    finally:
        reader.close()
    if row["doc_id"] != item.item_id:
        raise ContractBroken(
            f"Expected the doctags of {item.item_id!r}, found {row['doc_id']!r}; run the batch again."
        )
    return document_from(row["document"])


# What a provider gave is looked at before it is stored: a bad vector would poison every search.


def require_vectors(given: Any, dim: int, chunk_ids: Sequence[str]) -> np.ndarray:
    """Float32 rows of the promised width, one per chunk, each a direction; or an error that names a chunk."""
    _require_count(given, chunk_ids)
    for row, chunk_id in zip(given, chunk_ids, strict=True):
        if np.shape(row) != (dim,):
            raise _broken(f"has the shape {np.shape(row)}, not {dim} numbers", chunk_id)
    try:
        vectors = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError):
        raise _broken("is not made of numbers", chunk_ids[0]) from None
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.linalg.norm(vectors, axis=1)
    for index in np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))[:1]:
        fault = "is all zeros" if norms[index] == 0 else "is not finite, or too long to measure"
        raise _broken(fault, chunk_ids[int(index)])
    return vectors


def is_direction(given: Any, dim: int) -> bool:
    """True for a vector that may be stored."""
    try:
        vector = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        norm = np.linalg.norm(vector)
    return vector.shape == (dim,) and bool(np.isfinite(norm) and norm > 0)


def _require_count(given: Any, chunk_ids: Sequence[str]) -> None:
    number = len(given) if hasattr(given, "__len__") else 0
    if number != len(chunk_ids):
        first = chunk_ids[min(number, len(chunk_ids) - 1)]
        raise ContractBroken(
            f"The model gave {number} vectors for {len(chunk_ids)} chunks, from chunk {first} on.",
            detail={"chunk_id": first},
        )


def _broken(fault: str, chunk_id: str) -> ContractBroken:
    return ContractBroken(f"The vector of chunk {chunk_id} {fault}.", detail={"chunk_id": chunk_id})


def of_chunk(error: ItemError, chunk_ids: Sequence[str]) -> ItemError:
    """The same error, which says of which chunk it is."""
    index = error.detail.get("index")
    if not isinstance(index, int) or not 0 <= index < len(chunk_ids):
        return error
    detail = {key: value for key, value in error.detail.items() if key != "index"}
    return type(error)(f"Chunk {chunk_ids[index]}: {error}", detail={**detail, "chunk_id": chunk_ids[index]})
