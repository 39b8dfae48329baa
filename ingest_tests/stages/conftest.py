"""Tiny tables for a stage to read, like those of the stage before."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from docling_core.types.doc import DocItemLabel, DoclingDocument

from ingest_assets.core.items import ItemContext, Record, WorkItem
from ingest_assets.core.layout import Layout
from ingest_assets.core.schemas import DOCTAGS, TableSpec
from ingest_assets.parsing.reader import document_json
from ingest_assets.stages.base import Candidate, Stage, work_items
from ingest_assets.storage.parquet import Footer, write_parquet
from ingest_assets.storage.table import Table

BATCH = "2024-05-01-0001"
CONTEXT = ItemContext()


def bridge(paragraphs: int = 3) -> DoclingDocument:
    """A document with a title, two headings, paragraphs and a list."""
    document = DoclingDocument(name="bridge")
    document.add_title("The bridge")
    document.add_heading("Inspection")
    for number in range(paragraphs):
        document.add_text(
            DocItemLabel.TEXT, f"Cable {number} was inspected and found to be in good order. " * 4
        )
    document.add_heading("Repairs")
    group = document.add_list_group("repairs")
    for part in ("deck", "railing"):
        document.add_list_item(f"The {part} was repaired.", parent=group)
    return document


def write_table(path: Path, spec: TableSpec, rows_by_item: Mapping[str, pa.Table]) -> Table:
    """Write a table with these items."""
    records = {item: Record(f"fingerprint of {item}", rows.num_rows) for item, rows in rows_by_item.items()}
    write_parquet(path, spec, rows_by_item.values(), Footer("1", "c", records).as_metadata())
    return Table(spec.asset, (path,))


def doctags_row(doc_id: str, document: DoclingDocument) -> pa.Table:
    """Return a document's row, with the columns that the chunks stage reads."""
    row: dict[str, Any] = {
        "doc_id": doc_id,
        "content_hash": "h",
        "fingerprint": f"fingerprint of {doc_id}",
        "doctags": "",
        "document": document_json(document),
        "parser": "test",
        **dict.fromkeys(("pages", "texts", "tables", "pictures"), 0),
        "chars": sum(len(text.text) for text in document.texts),
        "title": None,
        "warnings": [],
    }
    return pa.Table.from_pylist([row], schema=DOCTAGS.schema)


def admitting(doctags: Table) -> Table:
    """Write verdicts that admit every document of a table, with the columns that later stages read."""
    (path,) = doctags.paths
    verdicts = pl.read_parquet(path).select("doc_id").with_columns(admitted=True, language=pl.lit("en"))
    beside = path.with_name(f"verdicts-on-{path.name}")
    verdicts.write_parquet(beside)
    return Table("admission", (beside,))


def item_of(stage: Stage, candidate: Candidate, home: Path) -> WorkItem:
    """Return the planned work item of a candidate."""
    (item,) = work_items(stage, [candidate], Layout(home), BATCH, None, {})
    return item


@pytest.fixture
def doctags_table(tmp_path: Path) -> Callable[..., Table]:
    """Make a doctags table of some documents."""

    def make(documents: Mapping[str, DoclingDocument], name: str = "doctags") -> Table:
        rows = {doc_id: doctags_row(doc_id, document) for doc_id, document in documents.items()}
        return write_table(tmp_path / f"{name}.parquet", DOCTAGS, rows)

    return make
