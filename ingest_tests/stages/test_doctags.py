"""A document is read by Docling and becomes a row."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_assets.core.errors import DocumentChanged
from ingest_assets.core.items import WorkItem
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.stages.documents import DocumentsStage, KnownFile
from ingest_tests.stages.conftest import BATCH, CONTEXT, item_of, write_table

MARKDOWN = b"# The bridge\n\nIt was inspected.\n\n| part | state |\n|---|---|\n| deck | good |\n"
STAGE = DoctagsStage()


def planned(path: Path, content: bytes = MARKDOWN) -> WorkItem:
    """Return the planned item of a file in the documents table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    known = KnownFile("docs:bridge.md", BATCH, 1, "docs", str(path), digest, len(content))
    (seen,) = DocumentsStage().candidates([known])
    rows = DocumentsStage().rows(item_of(DocumentsStage(), seen, path.parent), CONTEXT)
    table = write_table(path.parent / "documents.parquet", DocumentsStage.table, {known.doc_id: rows})
    (candidate,) = STAGE.candidates(table)
    return item_of(STAGE, candidate, path.parent)


def test_a_markdown_file_becomes_doctags_and_a_docling_document(tmp_path: Path) -> None:
    """With counters, title and fingerprint."""
    item = planned(tmp_path / "bridge.md")

    rows = STAGE.rows(item, CONTEXT)

    (row,) = rows.to_pylist()
    assert rows.schema == STAGE.spec.schema
    assert (row["doc_id"], row["fingerprint"]) == ("docs:bridge.md", item.fingerprint)
    assert row["content_hash"] == hashlib.sha256(MARKDOWN).hexdigest()
    assert "It was inspected." in row["doctags"]
    assert json.loads(row["document"])["schema_name"] == "DoclingDocument"
    assert (row["title"], row["tables"], row["pictures"]) == ("The bridge", 1, 0)
    assert row["chars"] > 0


def test_the_same_file_gives_the_same_row_in_any_folder(tmp_path: Path) -> None:
    """A moved folder costs no conversion."""
    first = planned(tmp_path / "one" / "bridge.md")
    second = planned(tmp_path / "two" / "bridge.md")

    assert second.fingerprint == first.fingerprint
    assert STAGE.rows(second, CONTEXT).equals(STAGE.rows(first, CONTEXT))


def test_bytes_and_media_type_are_in_the_fingerprint(tmp_path: Path) -> None:
    """The media type selects the parser."""
    marks = {
        planned(tmp_path / "bridge.md").fingerprint,
        planned(tmp_path / "bridge.md", MARKDOWN + b"!").fingerprint,
        planned(tmp_path / "bridge.adoc").fingerprint,
    }

    assert len(marks) == 3


def test_a_file_that_changed_since_it_was_acquired_is_rejected(tmp_path: Path) -> None:
    """The row would have the old hash and the new text."""
    item = planned(tmp_path / "bridge.md")
    (tmp_path / "bridge.md").write_text("# Other")

    with pytest.raises(DocumentChanged):
        STAGE.rows(item, CONTEXT)


def test_more_workers_mean_fewer_threads_and_the_same_row(tmp_path: Path) -> None:
    """Rows do not depend on the number of workers."""
    item = planned(tmp_path / "bridge.md")

    assert STAGE.rows(item, replace(CONTEXT, workers=64)).equals(STAGE.rows(item, CONTEXT))
