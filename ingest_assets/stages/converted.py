"""Converted documents, as stages below doctags read them: the plan's references, and the document itself."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ingest_assets.model.errors import ContractBroken
from ingest_assets.model.items import WorkItem
from ingest_assets.stages.stage import Candidate
from ingest_assets.storage.parquet import RowReader
from ingest_assets.storage.tables import Table

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument


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
    from ingest_assets.stages.quick_document import document_from

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
