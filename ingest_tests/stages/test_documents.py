"""A file that differs from the ledger's entry is rejected."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_assets.core.errors import DocumentChanged, DocumentMissing, DocumentUnreadable
from ingest_assets.core.items import WorkItem
from ingest_assets.stages.documents import DocumentsStage, KnownFile
from ingest_tests.stages.conftest import BATCH, CONTEXT, item_of


def known(path: Path, content: bytes = b"# Title\n") -> KnownFile:
    """Return the ledger's entry of a file with this content."""
    digest = hashlib.sha256(content).hexdigest()
    return KnownFile("docs:ä b.md", BATCH, 7, "docs", str(path), digest, len(content))


def item_for(file: KnownFile, home: Path) -> WorkItem:
    """Return the planned item of a file."""
    (candidate,) = DocumentsStage().candidates([file])
    return item_of(DocumentsStage(), candidate, home)


def test_a_file_becomes_a_row_with_its_location_and_type(tmp_path: Path) -> None:
    """The URI is quoted, the path is not."""
    path = tmp_path / "ä b.md"
    path.write_bytes(b"# Title\n")

    rows = DocumentsStage().rows(item_for(known(path), tmp_path), CONTEXT)

    assert rows.schema == DocumentsStage.table.schema
    assert rows.to_pylist() == [
        {
            "doc_id": "docs:ä b.md",
            "batch": BATCH,
            "seq": 7,
            "source": "docs",
            "uri": f"file://{tmp_path}/%C3%A4%20b.md",
            "path": str(path),
            "content_hash": hashlib.sha256(b"# Title\n").hexdigest(),
            "mime": "text/markdown",
            "size_bytes": 8,
            "resolver": None,
            "host": None,
            "etag": None,
            "last_modified": None,
            "meta": None,
        }
    ]


def test_an_empty_file_is_a_row(tmp_path: Path) -> None:
    """The next stage decides about empty files."""
    (tmp_path / "a.md").touch()

    rows = DocumentsStage().rows(item_for(known(tmp_path / "a.md", b""), tmp_path), CONTEXT)

    assert rows["size_bytes"].to_pylist() == [0]


def test_a_file_that_vanished_since_the_scan_is_missing(tmp_path: Path) -> None:
    """A retryable error: the next scan updates the ledger."""
    with pytest.raises(DocumentMissing, match=r"a\.md was removed after the scan\.") as raised:
        DocumentsStage().rows(item_for(known(tmp_path / "a.md"), tmp_path), CONTEXT)

    assert raised.value.retryable


def test_a_file_that_changed_since_the_scan_is_rejected(tmp_path: Path) -> None:
    """Its row would claim a hash it does not have."""
    (tmp_path / "a.md").write_bytes(b"# Other\n")

    with pytest.raises(DocumentChanged, match=r"a\.md changed after the scan\."):
        DocumentsStage().rows(item_for(known(tmp_path / "a.md"), tmp_path), CONTEXT)


def test_a_change_past_the_first_block_is_noticed(tmp_path: Path) -> None:
    """The whole file is hashed, not only its beginning."""
    content = b"x" * (1024 * 1024 + 5)
    (tmp_path / "a.md").write_bytes(content[:-1] + b"y")

    with pytest.raises(DocumentChanged):
        DocumentsStage().rows(item_for(known(tmp_path / "a.md", content), tmp_path), CONTEXT)


def test_the_error_of_an_unreadable_file_has_the_reason(tmp_path: Path) -> None:
    """A folder in place of the file makes the operating system fail."""
    (tmp_path / "a.md").mkdir()

    with pytest.raises(DocumentUnreadable, match=r"a\.md cannot be read \(.+\)\. Check its permissions"):
        DocumentsStage().rows(item_for(known(tmp_path / "a.md"), tmp_path), CONTEXT)


@pytest.mark.parametrize(
    "change", [{"content_hash": "0"}, {"path": "/elsewhere/a.md"}, {"batch": "other"}, {"seq": 8}]
)
def test_every_column_of_a_row_is_in_its_fingerprint(tmp_path: Path, change: dict[str, object]) -> None:
    """A moved folder makes the rows stale: they contain the file's path."""
    before = known(tmp_path / "a.md")
    after = replace(before, **change)

    assert item_for(after, tmp_path).fingerprint != item_for(before, tmp_path).fingerprint
    assert item_for(replace(before), tmp_path).fingerprint == item_for(before, tmp_path).fingerprint
