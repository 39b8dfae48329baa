"""Looking at a ledger shows it as it is and changes nothing: no byte, no lock, no file beside it."""

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
from ingest_assets.intake.ledger_copy import look_at
from ingest_assets.intake.schema import counters
from ingest_tests.intake.looks import WRITER, photo, running, write_old_ledger
from ingest_tests.intake.postgres import Postgres
from ingest_tests.intake.test_upgrade import VERSION_1

# Two counters that are always equal, in transactions that fill the log and let it begin anew all the time.
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
    """A ledger that knows one folder and that nobody has open."""
    path = tmp_path / "state" / "ledger.sqlite"
    ledger = Ledger(path)
    ledger.put_source(Source("docs", Path("/docs")), 1.0)
    ledger.close()
    return path


def names(ledger: Ledger) -> list[str]:
    """The folders that a ledger knows."""
    return [source.name for source in ledger.sources()]


def test_nobody_has_it_open(path: Path) -> None:
    """Not even the files that SQLite makes to read with are made; and what is written is lost."""
    before = photo(path.parent)

    ledger = look_at(path)
    ledger.put_source(Source("more", Path("/more")), 2.0)

    assert names(ledger) == ["docs", "more"]
    assert photo(path.parent) == before
    assert names(look_at(path)) == ["docs"]


def test_somebody_is_writing(path: Path) -> None:
    """What is committed is seen, also in the log alone; what is not is not; and nobody waits."""
    with running(WRITER, path):
        before, began = photo(path.parent), time.monotonic()

        assert names(look_at(path)) == ["docs", "late"]

        assert time.monotonic() - began < 10
        assert {file.rpartition("-")[2] for file in before} >= {"wal", "shm"}
        assert photo(path.parent) == before


def test_its_writer_was_killed(path: Path) -> None:
    """The files it left stay as they are, for the next one who writes to mend."""
    with running(WRITER, path) as writer:
        writer.kill()
        writer.wait()
        before = photo(path.parent)

        assert names(look_at(path)) == ["docs", "late"]

        assert photo(path.parent) == before
        (path.parent / "ledger.sqlite-shm").unlink()
        assert names(look_at(path)) == ["docs", "late"], "without its index the log is still read"
    assert names(Ledger(path)) == ["docs", "late"]


def test_somebody_writes_all_the_time(path: Path) -> None:
    """Every look sees one moment, however the log is turned meanwhile."""
    with running(BUSY, path):
        seen = [_counted(look_at(path)) for _ in range(60)]

    assert all(first == second for first, second in seen)
    assert seen == sorted(seen)
    assert seen[0] < seen[-1]


def test_somebody_writes_too_much_for_a_plain_copy(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is read as other readers do."""
    monkeypatch.setattr(looking, "_TRIES", 0)
    with running(BUSY, path):
        seen = [_counted(look_at(path)) for _ in range(10)]

    assert all(first == second for first, second in seen)
    assert seen[0] < seen[-1]


def _counted(ledger: Ledger) -> tuple[float, float]:
    with ledger.database.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        rows = {row.name: row.value for row in connection.execute(sa.select(counters))}
    ledger.close()
    return rows["first"], rows["second"]


def test_this_process_has_it_open_too(path: Path) -> None:
    """Its locks stay: others must not take it for gone and clear the log away."""
    ledger = Ledger(path)
    ledger.put_source(Source("more", Path("/more")), 2.0)

    for _ in range(2):
        assert names(look_at(path)) == ["docs", "more"]
    subprocess.run([sys.executable, "-c", VISITOR, str(path)], check=True, timeout=60)
    ledger.put_source(Source("last", Path("/last")), 3.0)

    assert (path.parent / "ledger.sqlite-wal").exists()
    assert names(Ledger(path)) == names(ledger) == ["docs", "last", "more"]


def test_it_is_a_link(path: Path, tmp_path: Path) -> None:
    """The log lies beside the file itself."""
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    ledger = Ledger(path)
    ledger.put_source(Source("more", Path("/more")), 2.0)

    assert names(look_at(link)) == ["docs", "more"]
    ledger.close()


def test_there_is_none(tmp_path: Path) -> None:
    """Then it is empty, and none is made."""
    assert look_at(tmp_path / "state" / "ledger.sqlite").documents() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_one_is_shown_as_it_would_be_after_an_upgrade(path: Path, version: int) -> None:
    """And stays as it is, for the release that made it."""
    write_old_ledger(path, version)
    before = photo(path.parent)

    ledger = look_at(path)

    assert [document.doc_id for document in ledger.documents()] == ["docs:a.md", "docs:b.md"]
    with ledger.begin() as connection:
        assert schema.version_of(connection) == schema.LEDGER_VERSION
    assert photo(path.parent) == before


def test_a_newer_one_is_refused_by_its_own_name(path: Path) -> None:
    """Nobody looks for a copy that is gone."""
    ledger = Ledger(path)
    with ledger.begin() as connection:
        connection.execute(schema.meta.update().values(value="99"))
    ledger.close()

    with pytest.raises(IngestError, match=f"{path} has schema version 99"):
        look_at(path)


def test_what_is_no_database_is_said_in_one_line(path: Path) -> None:
    """With its own name too."""
    path.write_bytes(b"not a database" * 100)

    with pytest.raises(IngestError, match=f"{path}: cannot be used as the ledger"):
        look_at(path)


def test_nothing_is_left_in_the_temporary_folder(path: Path, tmp_path: Path, monkeypatch) -> None:
    """Not even while somebody looks: a killed process leaves nothing behind."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    ledger = look_at(path)
    ledger.put_source(Source("more", Path("/more")), 2.0)

    assert list(folder.iterdir()) == []
    assert names(ledger) == ["docs", "more"]


def test_looks_at_the_same_time_do_not_disturb_each_other(path: Path) -> None:
    """A server may look for several people at once."""
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(names(look_at(path)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [["docs"]] * 8


def test_looks_keep_one_file_open_for_each_ledger(path: Path) -> None:
    """Many looks must not use up what a process may open."""
    look_at(path).close()
    before = len(list(Path("/proc/self/fd").iterdir()))

    for _ in range(20):
        look_at(path).close()

    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


class TestPostgres:
    """The same on a server: everything in one transaction that cannot write."""

    def test_it_is_shown_as_it_is_and_what_is_written_is_lost(self, postgres: Postgres) -> None:
        """All tables with all their columns."""
        url = postgres.fresh_url()
        ledger = Ledger(url)
        ledger.put_source(Source("docs", Path("/docs")), 1.0)
        before = dump(url)

        looked = look_at(url)
        looked.put_source(Source("more", Path("/more")), 2.0)

        assert names(looked) == ["docs", "more"]
        assert names(ledger) == ["docs"]
        assert dump(url) == before

    def test_an_older_one_is_not_upgraded(self, postgres: Postgres) -> None:
        """The copy is."""
        url = postgres.fresh_url()
        with Database(url).begin() as connection:
            for statement in filter(None, map(str.strip, VERSION_1.split(";"))):
                connection.exec_driver_sql(statement)
        before = dump(url)

        found = look_at(url).documents()

        assert found[0] == Document(
            "docs:a.md", "docs", "a.md", "aa", 5, 1714560000000000001, "2024-05-01-0001", 1, None
        )
        assert dump(url) == before

    def test_there_is_none(self, postgres: Postgres) -> None:
        """Then it is empty, and none is made."""
        url = postgres.fresh_url()

        assert look_at(url).documents() == []
        assert dump(url) == {}

    def test_who_may_only_read_can_look(self, postgres: Postgres) -> None:
        """Nothing but reading is asked of the server."""
        url = postgres.fresh_url()
        Ledger(url).put_source(Source("docs", Path("/docs")), 1.0)
        name = url.rpartition("%3D")[2]
        with postgres.connect() as connection:
            connection.execute(f"CREATE ROLE looker_{name} LOGIN")
            connection.execute(f"GRANT USAGE ON SCHEMA {name} TO looker_{name}")
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO looker_{name}")

        looked = look_at(url.replace("postgres@", f"looker_{name}@"))

        assert names(looked) == ["docs"]

    def test_a_server_that_is_not_there_is_one_line_without_the_password(self) -> None:
        """As for those who write."""
        with pytest.raises(IngestError, match=r"127\.0\.0\.1:1/db: cannot be used as the ledger") as refused:
            look_at("postgresql://me:secret@127.0.0.1:1/db")

        assert "secret" not in str(refused.value)


def dump(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, with the transaction that wrote it."""
    database = Database(url)
    with database.connect() as connection:
        tables = sorted(sa.inspect(connection).get_table_names())
        rows = {
            name: connection.exec_driver_sql(f"SELECT xmin::text, * FROM {name}").all() for name in tables
        }
    database.close()
    return {name: sorted(map(tuple, some), key=repr) for name, some in rows.items()}
