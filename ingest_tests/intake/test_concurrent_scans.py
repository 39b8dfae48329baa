"""The sensor and the CLI can scan the same folder at the same time."""

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingest_assets.intake.ledger import Ledger
from ingest_tests.intake.conftest import CHANGES, Watched, counts

SCANNER = """
import sys
from pathlib import Path
from ingest_assets.intake.folders import scan as watch
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.folders.scan import ScanLimits
from ingest_assets.settings.intake import BatchLimits
print("ready", flush=True)
sys.stdin.readline()
where = sys.argv[1]
ledger = Ledger(where if "://" in where else Path(where))
limits = ScanLimits(BatchLimits(max_documents=7))
report = watch.scan(ledger, [watch.WatchedFolder("docs", Path(sys.argv[2]))], limits)
print(report.new, report.moved, report.deleted)
"""


def scan_at_once(ledger: Path | str, folder: Path, processes: int) -> tuple[int, ...]:
    """Return the counts of new, moved and deleted files of several real processes together."""
    command = [sys.executable, "-c", SCANNER, str(ledger), str(folder)]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        lines = [process.communicate(timeout=60)[0].split() for process in started]
        return tuple(sum(map(int, column)) for column in zip(*lines, strict=True))
    finally:
        for process in started:
            process.kill()


def test_two_concurrent_first_scans_enter_every_file_once(tmp_path: Path, ledger_is_at: Path | str) -> None:
    """The ledger itself is new too: both create it."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number:02}.md").write_text(str(number))

    found = scan_at_once(ledger_is_at, folder, 3)

    watched = Watched(tmp_path, ledger_is_at)
    documents = watched.ledger.documents()
    assert found == (30, 0, 0)
    assert [document.seq for document in documents] == list(range(1, 31))
    assert len({document.doc_id for document in documents}) == 30
    assert len(watched.ledger.batches()) == 5
    assert max(watched.ledger.batches().values()) == 5


def test_a_new_ledger_waits_for_the_process_that_creates_it(tmp_path: Path) -> None:
    """SQLite answers "database is locked" at once while another writes a file not yet in WAL mode."""
    path = tmp_path / "ledger.sqlite"
    creator = sqlite3.connect(path, isolation_level=None)
    creator.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as thread:
        opened = thread.submit(Ledger, path)
        with pytest.raises(TimeoutError):
            opened.result(timeout=0.3)
        creator.execute("ROLLBACK")
        ledger = opened.result(timeout=30)

    assert ledger.batches() == {}
    ledger.close()
    creator.close()


def test_concurrent_scans_see_a_move_once(watched: Watched) -> None:
    """The second scan finds the document moved and must not delete it."""
    for number in range(30):
        watched.write(f"old/{number:02}.md")
    watched.scan(max_documents=7)
    before, revisions = watched.ledger.documents(), watched.ledger.batches()
    (watched.folder / "old").rename(watched.folder / "new")

    found = scan_at_once(watched.ledger_is_at, watched.folder, 3)

    after = watched.ledger.documents()
    assert found == (0, 30, 0)
    assert [document.doc_id for document in after] == [d.doc_id.replace("old", "new") for d in before]
    assert [(d.batch, d.seq, d.deleted_at) for d in after] == [(d.batch, d.seq, None) for d in before]
    assert max(watched.ledger.batches().values()) == max(revisions.values()) + 5


def test_an_older_scan_does_not_undo_a_move(watched: Watched) -> None:
    """It saw the file missing, and something else has its path since."""
    watched.write("a.md", "one")
    watched.write("b.md", "two")
    watched.scan()
    (watched.folder / "a.md").rename(watched.folder / "c.md")

    def clock() -> float:  # called after listing: another scan stores the move now, and one more
        if (watched.folder / "b.md").exists():
            watched.scan()
            (watched.folder / "b.md").rename(watched.folder / "a.md")
            watched.scan()
        return watched.now

    report = watched.scan(clock=clock)

    known = {d.doc_id: (d.seq, d.is_deleted()) for d in watched.ledger.documents()}
    assert known == {"docs:c.md": (1, False), "docs:a.md": (2, False)}
    assert not counts(report).keys() & CHANGES
    assert watched.scan().unchanged == 2
