"""Dagster's files stay open while a command runs, and nobody else's."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from ingest_assets.defs.held_open import MOST_HELD, held_open


def _write(path: Path) -> None:
    """As Dagster does it: a connection for each event."""
    path.parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=NullPool)
    with engine.connect() as connection, connection.begin():
        connection.execute(sa.text("PRAGMA journal_mode=WAL"))
        connection.execute(sa.text("CREATE TABLE IF NOT EXISTS events (id INTEGER)"))
    with engine.connect() as connection, connection.begin():
        connection.execute(sa.text("INSERT INTO events VALUES (1)"))
    engine.dispose()


def _rows(path: Path) -> int:
    with sa.create_engine(f"sqlite:///{path}", poolclass=NullPool).connect() as connection:
        return int(connection.execute(sa.text("SELECT count(*) FROM events")).scalar_one())


def _logs(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.db-wal")}


def test_the_log_is_merged_at_the_end_of_the_block_only(tmp_path):
    """Every merge costs two flushes, and a run has hundreds of events."""
    file = tmp_path / "state" / "runs.db"

    with held_open(tmp_path / "state", tmp_path / "state" / "ledger.db"):
        _write(file)
        assert _logs(tmp_path) == {"runs.db-wal"}
        assert _rows(file) == 1

    assert _logs(tmp_path) == set()
    assert _rows(file) == 1


def test_files_of_others_are_left_alone(tmp_path):
    """The ledger has its own rules; and after the block nothing is held any more."""
    (tmp_path / "state").mkdir()
    with held_open(tmp_path / "state", tmp_path / "state" / "ledger.db"):
        _write(tmp_path / "state" / "ledger.db")
        _write(tmp_path / "elsewhere" / "other.db")
        assert _logs(tmp_path) == set()

    _write(tmp_path / "state" / "late.db")
    assert _logs(tmp_path) == set()


def test_a_few_files_are_held_and_no_more(tmp_path):
    """Each run has a file of its own, and a command may have thousands of runs."""
    with held_open(tmp_path, tmp_path / "ledger.db"):
        for number in range(3 * MOST_HELD):
            _write(tmp_path / f"{number}.db")
        assert len(_logs(tmp_path)) == MOST_HELD

    assert _logs(tmp_path) == set()
    assert [_rows(tmp_path / f"{number}.db") for number in range(3 * MOST_HELD)] == [1] * 3 * MOST_HELD
