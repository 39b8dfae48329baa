"""Damaged tables: quarantined, or read again if another run has replaced them."""

import shutil
from pathlib import Path

import pytest

from ingest_assets.app.home import Home
from ingest_assets.app.repair import quarantine_damaged
from ingest_assets.core.errors import TableDamaged
from ingest_assets.core.schemas import CHUNKS
from ingest_assets.storage.parquet import verify_readable
from ingest_tests.app.tables import BATCHES, chunk_rows, put

BATCH = BATCHES[0]


@pytest.fixture
def table(home: Home) -> Path:
    """An intact table of the home."""
    put(home, CHUNKS, BATCH, {"d": chunk_rows("d", ["a", "b"])})
    return home.layout.table("chunks", BATCH)


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_damaged_table_is_quarantined_and_missing_afterwards(home: Home, table: Path) -> None:
    """The second read does not find it; the next run rebuilds it."""
    _cut_off(table)

    def read() -> list[Path]:
        existing = [path for path in (table,) if path.exists()]
        verify_readable(existing)
        return existing

    assert quarantine_damaged(home, read) == []


def test_a_table_that_another_run_has_replaced_is_read_again(home: Home, table: Path) -> None:
    """Another run rebuilt it between the read and the quarantine."""
    intact = table.with_suffix(".intact")
    shutil.copy(table, intact)
    _cut_off(table)

    def read() -> str:
        try:
            verify_readable([table])
        except TableDamaged:
            intact.replace(table)
            raise
        return "read"

    assert quarantine_damaged(home, read) == "read"
    assert table.is_file()


def test_an_intact_table_that_a_reader_reports_twice_raises(home: Home, table: Path) -> None:
    """A table that can be read is not moved, and reading it again stops after the second error."""
    reads = []

    def read() -> None:
        reads.append(table)
        raise TableDamaged.at(table, OSError("not seen by others"))

    with pytest.raises(TableDamaged, match="not seen by others"):
        quarantine_damaged(home, read)
    assert len(reads) == 2
    assert table.is_file()
