"""For tests of read-only copies: snapshots of a folder, and ledgers in every state."""

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest_tests.intake.test_upgrade import VERSION_1, VERSION_2

# Adds a source that is only in the log, then starts to delete all and does not commit.
WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA wal_autocheckpoint=0")
connection.execute("INSERT INTO sources VALUES ('late', '/late', 'command', 1.0)")
connection.execute("BEGIN IMMEDIATE")
connection.execute("DELETE FROM sources")
print("ready", flush=True)
sys.stdin.readline()
"""
Photo = dict[str, tuple[object, ...]]


def photo(folder: Path) -> Photo:
    """Return every file of a folder, with its content and times."""
    found: Photo = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        facts = (
            status.st_mode,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            hashlib.sha256(content).hexdigest(),
        )
        found[str(path.relative_to(folder))] = facts
    return found


@contextmanager
def running(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run another process during the `with` block, from its ready line on; kill it at the end."""
    line = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def write_old_ledger(path: Path, version: int) -> None:
    """Replace the ledger with one of an older release."""
    path.unlink(missing_ok=True)
    number = "INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL"
    script = VERSION_1 if version == 1 else VERSION_1 + VERSION_2.format(number=number)
    connection = sqlite3.connect(path)
    connection.executescript("PRAGMA journal_mode=WAL;" + script)
    connection.close()
