"""A file that is not what the ledger says it is must not slip through."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_assets.core.errors import DocumentChanged, DocumentMissing, DocumentUnreadable
from ingest_assets.core.items import WorkItem
from ingest_assets.stages.documents import DocumentsStage, KnownFile
from ingest_tests.stages.conftest import BATCH, CONTEXT, item_of


def known(path: Path, content: bytes = b"# Title\n") -> KnownFile:
    """What the ledger says of a file with this content."""
    digest = hashlib.sha256(content).hexdigest()
    return KnownFile("docs:ä b.md", BATCH, 7, "docs", str(path), digest, len(content))


def item_for(file: KnownFile, home: Path) -> WorkItem:
    """The planned item of a file."""
    (candidate,) = DocumentsStage().candidates([file])
    return item_of(DocumentsStage(), candidate, home)


def test_a_file_becomes_a_row_that_says_where_and_what_it_is(tmp_path: Path) -> None:
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
    """That it holds nothing is for the next stage to say."""
    (tmp_path / "a.md").touch()

    rows = DocumentsStage().rows(item_for(known(tmp_path / "a.md", b""), tmp_path), CONTEXT)

    assert rows["size_bytes"].to_pylist() == [0]


def test_a_file_that_vanished_since_the_scan_is_missing(tmp_path: Path) -> None:
    """Worth another try: the next scan settles it."""
    with pytest.raises(DocumentMissing, match=r"a\.md vanished after the folder was scanned") as raised:
        DocumentsStage().rows(item_for(known(tmp_path / "a.md"), tmp_path), CONTEXT)

    assert raised.value.retryable


def test_a_file_that_changed_since_the_scan_is_refused(tmp_path: Path) -> None:
    """Its row would claim a hash it does not have."""
    (tmp_path / "a.md").write_bytes(b"# Other\n")

    with pytest.raises(DocumentChanged, match=r"a\.md changed after the folder was scanned"):
        DocumentsStage().rows(item_for(known(tmp_path / "a.md"), tmp_path), CONTEXT)


def test_a_change_past_the_first_block_is_noticed(tmp_path: Path) -> None:
    """The whole file is read, not its beginning."""
    content = b"x" * (1024 * 1024 + 5)
    (tmp_path / "a.md").write_bytes(content[:-1] + b"y")

    with pytest.raises(DocumentChanged):
        DocumentsStage().rows(item_for(known(tmp_path / "a.md", content), tmp_path), CONTEXT)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """A folder of that name stands for whatever the operating system refuses."""
    (tmp_path / "a.md").mkdir()

    with pytest.raises(DocumentUnreadable, match=r"a\.md cannot be read \(.+\); check its permissions"):
        DocumentsStage().rows(item_for(known(tmp_path / "a.md"), tmp_path), CONTEXT)


@pytest.mark.parametrize(
    "change", [{"content_hash": "0"}, {"path": "/elsewhere/a.md"}, {"batch": "other"}, {"seq": 8}]
)
def test_whatever_a_row_says_is_in_its_fingerprint(tmp_path: Path, change: dict[str, object]) -> None:
    """A moved folder makes the rows stale: they say where the bytes rest."""
    before = known(tmp_path / "a.md")
    after = replace(before, **change)

    assert item_for(after, tmp_path).fingerprint != item_for(before, tmp_path).fingerprint
    assert item_for(replace(before), tmp_path).fingerprint == item_for(before, tmp_path).fingerprint
