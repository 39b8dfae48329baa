"""A read-only copy shows the ledger as it is and changes nothing: no byte, no lock, no file beside it."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from ingest_assets.core.errors import IngestError
from ingest_assets.intake import ledger_copy as looking
from ingest_assets.intake import schema
from ingest_assets.intake.database import Database
from ingest_assets.intake.ledger import Document, Ledger, Source
from ingest_assets.intake.ledger_copy import open_copy
from ingest_assets.intake.schema import counters
from ingest_tests.intake.looks import WRITER, photo, running, write_old_ledger
from ingest_tests.intake.postgres import Postgres
from ingest_tests.intake.test_upgrade import VERSION_1

# Two counters that are always equal, in transactions that fill the log and make it restart all the time.
BUSY = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
connection.execute("PRAGMA synchronous=OFF")
connection.execute("PRAGMA wal_autocheckpoint=20")
connection.execute("INSERT INTO counters VALUES ('first', 0), ('second', 0)")
for number in range(10**9):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'first'")
    filler = [(f"{number}-{n}", "x" * 3000) for n in range(5)]
    connection.executemany("INSERT INTO scan_problems VALUES ('busy', ?, ?)", filler)
    connection.execute("DELETE FROM scan_problems WHERE source = 'busy' AND path < ?", (str(number - 20),))
    connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'second'")
    connection.execute("COMMIT")
    if number == 20:
        print("ready", flush=True)
"""
VISITOR = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM sources').fetchall()"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with one folder, not opened by any process."""
    path = tmp_path / "state" / "ledger.sqlite"
    ledger = Ledger(path)
    ledger.put_source(Source("docs", Path("/docs")), 1.0)
    ledger.close()
    return path


def names(ledger: Ledger) -> list[str]:
    """Return the names of the ledger's folders."""
    return [source.name for source in ledger.sources()]


def test_a_ledger_that_is_not_open(path: Path) -> None:
    """SQLite creates no files to read it, and changes of the copy are lost."""
    before = photo(path.parent)

    ledger = open_copy(path)
    ledger.put_source(Source("more", Path("/more")), 2.0)

    assert names(ledger) == ["docs", "more"]
    assert photo(path.parent) == before
    assert names(open_copy(path)) == ["docs"]


def test_another_process_is_writing(path: Path) -> None:
    """Committed changes are seen, also those only in the log; others are not, and no process waits."""
    with running(WRITER, path):
        before, began = photo(path.parent), time.monotonic()

        assert names(open_copy(path)) == ["docs", "late"]

        assert time.monotonic() - began < 10
        assert {file.rpartition("-")[2] for file in before} >= {"wal", "shm"}
        assert photo(path.parent) == before


def test_its_writer_was_killed(path: Path) -> None:
    """Its files stay as they are, for the next writer to repair."""
    with running(WRITER, path) as writer:
        writer.kill()
        writer.wait()
        before = photo(path.parent)

        assert names(open_copy(path)) == ["docs", "late"]

        assert photo(path.parent) == before
        (path.parent / "ledger.sqlite-shm").unlink()
        assert names(open_copy(path)) == ["docs", "late"], "without its index the log is still read"
    assert names(Ledger(path)) == ["docs", "late"]


def test_another_process_writes_all_the_time(path: Path) -> None:
    """Every copy shows one moment, however often the log restarts."""
    with running(BUSY, path):
        seen = [_counted(open_copy(path)) for _ in range(60)]

    assert all(first == second for first, second in seen)
    assert seen == sorted(seen)
    assert seen[0] < seen[-1]


def test_too_many_writes_for_a_plain_copy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then SQLite's backup copies it."""
    monkeypatch.setattr(looking, "_MAX_TRIES", 0)
    with running(BUSY, path):
        seen = [_counted(open_copy(path)) for _ in range(10)]

    assert all(first == second for first, second in seen)
    assert seen[0] < seen[-1]


def _counted(ledger: Ledger) -> tuple[float, float]:
    with ledger.database.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        rows = {row.name: row.value for row in connection.execute(sa.select(counters))}
    ledger.close()
    return rows["first"], rows["second"]


def test_this_process_has_it_open_too(path: Path) -> None:
    """Its locks stay: others must not take it for dead and clear the log."""
    ledger = Ledger(path)
    ledger.put_source(Source("more", Path("/more")), 2.0)

    for _ in range(2):
        assert names(open_copy(path)) == ["docs", "more"]
    subprocess.run([sys.executable, "-c", VISITOR, str(path)], check=True, timeout=60)
    ledger.put_source(Source("last", Path("/last")), 3.0)

    assert (path.parent / "ledger.sqlite-wal").exists()
    assert names(Ledger(path)) == names(ledger) == ["docs", "last", "more"]


def test_it_is_a_link(path: Path, tmp_path: Path) -> None:
    """The log is stored beside the file itself."""
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    ledger = Ledger(path)
    ledger.put_source(Source("more", Path("/more")), 2.0)

    assert names(open_copy(link)) == ["docs", "more"]
    ledger.close()


def test_there_is_none(tmp_path: Path) -> None:
    """Then it is empty, and none is made."""
    assert open_copy(tmp_path / "state" / "ledger.sqlite").documents() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_ledger_is_upgraded_in_the_copy(path: Path, version: int) -> None:
    """And stays as it is, for the release that created it."""
    write_old_ledger(path, version)
    before = photo(path.parent)

    ledger = open_copy(path)

    assert [document.doc_id for document in ledger.documents()] == ["docs:a.md", "docs:b.md"]
    with ledger.begin() as connection:
        assert schema.version_of(connection) == schema.LEDGER_VERSION
    assert photo(path.parent) == before


def test_a_newer_ledger_is_refused_with_its_path(path: Path) -> None:
    """The path of the copy would not help."""
    ledger = Ledger(path)
    with ledger.begin() as connection:
        connection.execute(schema.meta.update().values(value="99"))
    ledger.close()

    with pytest.raises(IngestError, match=f"{path} has schema version 99"):
        open_copy(path)


def test_an_invalid_file_is_one_line(path: Path) -> None:
    """With its own path too."""
    path.write_bytes(b"not a database" * 100)

    with pytest.raises(IngestError, match=f"{path}: cannot be used as the ledger"):
        open_copy(path)


def test_nothing_is_left_in_the_temporary_folder(path: Path, tmp_path: Path, monkeypatch) -> None:
    """Not even while the copy is open: a killed process leaves nothing behind."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    ledger = open_copy(path)
    ledger.put_source(Source("more", Path("/more")), 2.0)

    assert list(folder.iterdir()) == []
    assert names(ledger) == ["docs", "more"]


def test_concurrent_copies_are_independent(path: Path) -> None:
    """A server can serve several people at once."""
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(names(open_copy(path)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [["docs"]] * 8


def test_copies_keep_one_file_open_for_each_ledger(path: Path) -> None:
    """Many copies must not reach the limit of open files."""
    open_copy(path).close()
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(20):
        open_copy(path).close()

    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


class TestPostgres:
    """The same on a server: everything in one read-only transaction."""

    def test_a_copy_has_everything_and_its_changes_are_lost(self, postgres: Postgres) -> None:
        """All tables with all columns."""
        url = postgres.fresh_url()
        ledger = Ledger(url)
        ledger.put_source(Source("docs", Path("/docs")), 1.0)
        before = dump(url)

        looked = open_copy(url)
        looked.put_source(Source("more", Path("/more")), 2.0)

        assert names(looked) == ["docs", "more"]
        assert names(ledger) == ["docs"]
        assert dump(url) == before

    def test_an_older_ledger_is_not_upgraded(self, postgres: Postgres) -> None:
        """Only the copy is."""
        url = postgres.fresh_url()
        with Database(url).begin() as connection:
            for statement in filter(None, map(str.strip, VERSION_1.split(";"))):
                connection.exec_driver_sql(statement)
        before = dump(url)

        found = open_copy(url).documents()

        assert found[0] == Document(
            "docs:a.md", "docs", "a.md", "aa", 5, 1714560000000000001, "2024-05-01-0001", 1, None
        )
        assert dump(url) == before

    def test_there_is_none(self, postgres: Postgres) -> None:
        """Then it is empty, and none is made."""
        url = postgres.fresh_url()

        assert open_copy(url).documents() == []
        assert dump(url) == {}

    def test_a_user_who_can_only_read_can_copy(self, postgres: Postgres) -> None:
        """Copying only reads."""
        url = postgres.fresh_url()
        Ledger(url).put_source(Source("docs", Path("/docs")), 1.0)
        name = url.rpartition("%3D")[2]
        with postgres.connect() as connection:
            connection.execute(f"CREATE ROLE looker_{name} LOGIN")
            connection.execute(f"GRANT USAGE ON SCHEMA {name} TO looker_{name}")
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO looker_{name}")

        looked = open_copy(url.replace("postgres@", f"looker_{name}@"))

        assert names(looked) == ["docs"]

    def test_an_unreachable_server_is_one_line_without_the_password(self) -> None:
        """As when the ledger itself is opened."""
        with pytest.raises(IngestError, match=r"127\.0\.0\.1:1/db: cannot be used as the ledger") as refused:
            open_copy("postgresql://me:secret@127.0.0.1:1/db")

        assert "secret" not in str(refused.value)


def dump(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of every table, with the transaction that wrote it."""
    database = Database(url)
    with database.connect() as connection:
        tables = sorted(sa.inspect(connection).get_table_names())
        rows = {
            name: connection.exec_driver_sql(f"SELECT xmin::text, * FROM {name}").all() for name in tables
        }
    database.close()
    return {name: sorted(map(tuple, some), key=repr) for name, some in rows.items()}
