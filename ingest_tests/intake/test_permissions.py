"""Unreadable files are reported and kept, not deleted. Runs as an unprivileged user."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest_tests.intake.conftest import NOBODY_UID, Watched

SCAN = """
import json
from pathlib import Path
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.folders.scan import ScanLimits
root = Path(sys.argv[1])
ledger = Ledger(root / "state" / "ledger.sqlite")
folders = [watch.WatchedFolder(name, root / name) for name in sys.argv[2:]]
report = watch.scan(ledger, folders, ScanLimits())
print(json.dumps({
    "new": report.new, "changed": report.changed, "deleted": report.deleted,
    "moved": report.moved, "restored": report.restored, "unchanged": report.unchanged,
    "living": sorted(d.doc_id for d in ledger.documents() if not d.is_deleted()),
    "revisions": ledger.batches(),
    "problems": {path: reason for _, path, reason in ledger.problems()},
}))
"""
Scan = Callable[..., dict[str, Any]]


@pytest.fixture
def watched(open_folder: Path) -> Watched:
    """A folder that an unprivileged user owns; root's ledger is discarded."""
    watched = Watched(open_folder)
    watched.ledger.close()
    return watched


@pytest.fixture
def scan(open_folder: Path, as_nobody: Callable[..., str]) -> Scan:
    """Scan as an unprivileged user and return the report."""

    def run(*sources: str) -> dict[str, Any]:
        for path in (open_folder, *open_folder.rglob("*")):
            if os.getuid() == 0:
                os.chown(path, NOBODY_UID, NOBODY_UID)
        result: dict[str, Any] = json.loads(as_nobody(SCAN, open_folder, *(sources or ("docs",))))
        return result

    return run


def test_an_unreadable_folder_deletes_nothing_below_it(watched: Watched, scan: Scan) -> None:
    """When it is readable again, only real changes are found."""
    closed = watched.write("closed/deep/a.md").parent.parent
    watched.write("closed/b.md")
    watched.write("closed-not/c.md").unlink()
    watched.write("open.md")
    before = scan()
    closed.chmod(0)

    shut = scan()
    closed.chmod(0o755)
    (closed / "b.md").unlink()
    reopened = scan()

    assert before["living"] == ["docs:closed/b.md", "docs:closed/deep/a.md", "docs:open.md"]
    assert (shut["living"], shut["revisions"]) == (before["living"], before["revisions"])
    assert list(shut["problems"]) == ["closed"]
    assert "check its permissions" in shut["problems"]["closed"]
    assert (reopened["deleted"], reopened["unchanged"], reopened["problems"]) == (1, 2, {})


def test_an_unreadable_folder_hides_only_its_own_files(watched: Watched, scan: Scan) -> None:
    """A deleted file in a folder whose name starts the same way is found."""
    watched.write("sub/a.md")
    neighbour = watched.write("sub2/b.md")
    scan()
    (watched.folder / "sub").chmod(0)
    neighbour.unlink()

    report = scan()

    assert (report["deleted"], report["living"]) == (1, ["docs:sub/a.md"])


def test_an_unreadable_root_deletes_nothing(watched: Watched, scan: Scan) -> None:
    """Although nothing in it can be listed."""
    watched.write("a.md")
    before = scan()
    watched.folder.chmod(0)

    report = scan()

    assert (report["living"], report["revisions"]) == (before["living"], before["revisions"])
    assert len(report["problems"]) == 1


def test_an_unreadable_file_is_reported_and_entered_once_it_is_readable(watched: Watched, scan: Scan) -> None:
    """Other files do not wait for it."""
    path = watched.write("a.md")
    watched.write("b.md")
    path.chmod(0)

    shut = scan()
    path.chmod(0o644)
    opened = scan()

    assert shut["living"] == ["docs:b.md"]
    assert list(shut["problems"]) == ["a.md"]
    assert (opened["new"], opened["problems"]) == (1, {})


def test_a_folder_that_cannot_be_entered_does_not_stop_other_sources(watched: Watched, scan: Scan) -> None:
    """A source below an unreadable folder counts as missing."""
    inner = watched.folder.parent / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "a.md").write_text("x")
    watched.write("b.md")
    before = scan("docs", "outer/inner")
    inner.parent.chmod(0)
    watched.write("c.md")

    report = scan("docs", "outer/inner")

    assert (report["new"], report["deleted"]) == (1, 0)
    assert set(report["living"]) == {*before["living"], "docs:c.md"}
    assert len(report["problems"]) == 1


def test_an_unreadable_folder_whose_name_is_not_utf8_is_reported(watched: Watched, scan: Scan) -> None:
    """Two faults at once are still one line in the report."""
    folder = Path(os.fsdecode(os.fsencode(watched.folder) + b"/dir\xfe"))
    folder.mkdir()
    watched.write("a.md")
    folder.chmod(0)

    report = scan()

    assert report["living"] == ["docs:a.md"]
    assert list(report["problems"]) == ["dir\\xfe"]
