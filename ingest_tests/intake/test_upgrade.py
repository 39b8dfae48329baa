"""A ledger of an older release is upgraded in place, with all its data."""

import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from ingest_assets.core.errors import IngestError
from ingest_assets.intake import schema
from ingest_assets.intake.batches import assign_batches
from ingest_assets.intake.database import Database
from ingest_assets.intake.ledger import Document, Ledger, Source
from ingest_assets.intake.queue.queue import Queue
from ingest_assets.settings.intake import BatchLimits, QueueOptions

# The statements of version 1, as that release sent them to SQLite; PostgreSQL accepts them too.
VERSION_1 = """
CREATE TABLE meta (key VARCHAR(64) NOT NULL, value VARCHAR(256) NOT NULL, PRIMARY KEY (key));
CREATE TABLE sources (name VARCHAR(64) NOT NULL, path TEXT NOT NULL, origin VARCHAR(16) NOT NULL,
  first_seen FLOAT NOT NULL, PRIMARY KEY (name));
CREATE TABLE documents (doc_id TEXT NOT NULL, source VARCHAR(64) NOT NULL, path TEXT NOT NULL,
  content_hash VARCHAR(64) NOT NULL, size_bytes BIGINT NOT NULL, mtime_ns BIGINT NOT NULL,
  batch VARCHAR(32) NOT NULL, seq BIGINT NOT NULL, first_seen FLOAT NOT NULL, last_seen FLOAT NOT NULL,
  deleted_at FLOAT, PRIMARY KEY (doc_id), UNIQUE (seq));
CREATE INDEX documents_by_batch ON documents (batch, seq);
CREATE INDEX documents_by_source ON documents (source);
CREATE TABLE batches (key VARCHAR(32) NOT NULL, revision BIGINT NOT NULL, complete_mark VARCHAR(64),
  PRIMARY KEY (key));
CREATE INDEX ix_batches_revision ON batches (revision);
CREATE TABLE scan_problems (source VARCHAR(64) NOT NULL, path TEXT NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (source, path));
INSERT INTO meta VALUES ('ledger_version', '1');
INSERT INTO sources VALUES ('docs', '/docs', 'settings', 1.5);
INSERT INTO documents VALUES ('docs:a.md', 'docs', 'a.md', 'aa', 5, 1714560000000000001, '2024-05-01-0001',
  1, 1.5, 2.5, NULL);
INSERT INTO documents VALUES ('docs:b.md', 'docs', 'b.md', 'bb', 6, 7, '2024-05-01-0001', 2, 1.5, 2.5, 3.5);
INSERT INTO batches VALUES ('2024-05-01-0001', 4, 'mark');
INSERT INTO scan_problems VALUES ('docs', 'c.md', 'cannot be read');
"""

# What version 2 added.
VERSION_2 = """
CREATE TABLE artifacts (seq {number}, artifact_id TEXT NOT NULL, url TEXT, path TEXT,
  resolver VARCHAR(64) NOT NULL, host TEXT NOT NULL,
  lane TEXT GENERATED ALWAYS AS (resolver || ' ' || host) STORED, meta TEXT NOT NULL, batch VARCHAR(32),
  state VARCHAR(16) NOT NULL, attempts INTEGER NOT NULL, max_attempts INTEGER, not_before FLOAT NOT NULL,
  lease_token VARCHAR(64), leased_by TEXT, leased_at FLOAT, lease_expires FLOAT, last_error TEXT,
  error_category VARCHAR(16), duplicate_of TEXT, detail TEXT, content_hash VARCHAR(64), etag TEXT,
  last_modified TEXT, enqueued_at FLOAT NOT NULL, finished_at FLOAT, UNIQUE (artifact_id),
  UNIQUE (lease_token));
CREATE INDEX artifacts_by_batch ON artifacts (batch, seq);
CREATE INDEX artifacts_by_lane ON artifacts (lane, not_before, seq) WHERE state = 'queued';
CREATE INDEX artifacts_failed ON artifacts (seq) WHERE state = 'error';
CREATE INDEX artifacts_in_line ON artifacts (not_before, seq) WHERE state = 'queued';
CREATE INDEX artifacts_leased ON artifacts (lease_expires) WHERE state = 'in_progress';
CREATE INDEX artifacts_without_batch ON artifacts (seq) WHERE batch IS NULL;
CREATE TABLE quotas (api VARCHAR(64) NOT NULL, tokens FLOAT NOT NULL, filled_at FLOAT NOT NULL,
  consumed BIGINT NOT NULL, throttled BIGINT NOT NULL, PRIMARY KEY (api));
INSERT INTO artifacts (artifact_id, path, resolver, host, meta, batch, state, attempts, not_before,
  enqueued_at)
  VALUES ('one', '/files/1.md', 'file', '', '{{}}', '2024-05-02-0001', 'queued', 0, 1.5, 1.5);
UPDATE meta SET value = '2';
"""

OPENER = """
import sys
from pathlib import Path
from ingest_assets.intake.ledger import Ledger
print("ready", flush=True)
sys.stdin.readline()
where = sys.argv[1]
print(len(Ledger(where if "://" in where else Path(where)).documents()))
"""


@pytest.fixture
def version_1(ledger_is_at: Path | str) -> Path | str:
    """A database of version 1 with two documents."""
    _execute(ledger_is_at, VERSION_1)
    return ledger_is_at


@pytest.fixture
def version_2(version_1: Path | str) -> Path | str:
    """A database of version 2 with an artifact that has a batch."""
    is_sqlite = isinstance(version_1, Path)
    number = "INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL" if is_sqlite else "BIGSERIAL PRIMARY KEY"
    _execute(version_1, VERSION_2.format(number=number))
    return version_1


def _execute(where: Path | str, script: str) -> None:
    database = Database(where)
    with database.begin() as connection:
        for statement in filter(None, map(str.strip, script.split(";"))):
            connection.exec_driver_sql(statement)
    database.close()


def test_version_1_is_upgraded_with_all_its_data(version_1: Path | str) -> None:
    """Documents, batches, fingerprints, sources and problems stay; the queue is empty."""
    ledger = Ledger(version_1)

    assert ledger.sources() == [Source("docs", Path("/docs"), "settings")]
    assert ledger.documents() == [
        Document("docs:a.md", "docs", "a.md", "aa", 5, 1714560000000000001, "2024-05-01-0001", 1, None),
        Document("docs:b.md", "docs", "b.md", "bb", 6, 7, "2024-05-01-0001", 2, 3.5),
    ]
    assert ledger.batches() == {"2024-05-01-0001": 4}
    assert ledger.complete_fingerprint("2024-05-01-0001") == "mark"
    assert ledger.problems() == [("docs", "c.md", "cannot be read")]
    with ledger.begin() as connection:
        assert schema.version_of(connection) == schema.LEDGER_VERSION
        assert connection.scalar(sa.select(sa.func.count()).select_from(schema.artifacts)) == 0


def test_an_upgraded_ledger_is_like_a_new_one(version_1: Path | str, tmp_path: Path) -> None:
    """The same tables, columns and indices."""
    Ledger(version_1).close()
    metadata = sa.MetaData()

    with Database(version_1).connect() as connection:
        metadata.reflect(connection)

    assert _shape(metadata) == _shape(schema.metadata)


def test_version_2_is_upgraded_and_its_artifacts_get_batches_with_numbers(version_2: Path | str) -> None:
    """Its artifacts were never acquired, so they lose nothing by a new batch."""
    ledger = Ledger(version_2)
    queue = Queue(ledger.database, QueueOptions())

    (key,) = assign_batches(ledger, BatchLimits(), 1_714_560_000.0)

    assert queue.get("one").batch == key  # type: ignore[union-attr]
    assert queue.get("one").doc_seq == 3  # type: ignore[union-attr]
    with ledger.begin() as connection:
        metadata = sa.MetaData()
        metadata.reflect(connection)
    assert _shape(metadata) == _shape(schema.metadata)


def test_two_processes_that_open_an_old_ledger_upgrade_it_once(version_1: Path | str) -> None:
    """The second waits, reads the version again and has nothing to do."""
    line = [sys.executable, "-c", OPENER, str(version_1)]
    started = [
        subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    ends = [process.communicate(timeout=60) for process in started]
    assert [out for out, _ in ends] == ["2\n"] * 3, ends


@pytest.mark.parametrize("version", [str(schema.LEDGER_VERSION + 1), "0"])
def test_an_unknown_version_is_refused_and_not_changed(version_1: Path | str, version: str) -> None:
    """A newer release can use the same columns differently."""
    database = Database(version_1)
    with database.begin() as connection:
        connection.execute(schema.meta.update().values(value=version))

    with pytest.raises(
        IngestError, match=f"schema version {version}; this release supports {schema.LEDGER_VERSION}"
    ):
        Ledger(version_1)

    with database.connect() as connection:
        assert not sa.inspect(connection).has_table("artifacts")


def _shape(metadata: sa.MetaData) -> dict[str, tuple[set[str], set[str | None]]]:
    return {
        name: ({column.name for column in table.columns}, {str(index.name) for index in table.indexes})
        for name, table in metadata.tables.items()
    }
