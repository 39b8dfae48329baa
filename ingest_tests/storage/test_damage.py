"""What counts as a damaged table, and what becomes of it."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest_assets.core.errors import TableDamaged
from ingest_assets.core.layout import Layout
from ingest_assets.storage.locks import FileLock
from ingest_assets.storage.parquet import naming_damage, put_aside

BATCH = "2026-01-01-0001"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A home with one whole table."""
    layout = Layout(tmp_path)
    path = layout.table("chunks", BATCH)
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"text": [f"hive {number}" for number in range(1000)]}), path)
    return layout


def _truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ESTALE])
def test_a_fault_of_the_system_is_not_called_damage(tmp_path: Path, number: int) -> None:
    """A busy machine must not cost a table that is whole."""
    with pytest.raises(OSError, match=os.strerror(number)), naming_damage(tmp_path / "table"):
        raise OSError(number, os.strerror(number))


def test_too_little_memory_is_not_called_damage(tmp_path: Path) -> None:
    """The bytes were not even looked at."""
    with pytest.raises(pa.ArrowMemoryError), naming_damage(tmp_path / "table"):
        raise pa.ArrowMemoryError("malloc of size 1099511627776 failed")


def test_a_disk_that_gives_no_bytes_is_damage_of_the_file_it_names(tmp_path: Path) -> None:
    """Bad sectors."""
    with pytest.raises(TableDamaged, match="table is damaged"), naming_damage(tmp_path / "table"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_damaged_table_is_kept_in_quarantine(layout: Layout) -> None:
    """Somebody may want to know what happened to it."""
    path = layout.table("chunks", BATCH)
    _truncate(path)
    damaged = path.read_bytes()

    kept = put_aside(layout, path)

    assert kept is not None
    assert kept.read_bytes() == damaged
    assert not path.exists()


def test_a_table_that_is_whole_stays_where_it_is(layout: Layout) -> None:
    """It was replaced since somebody found it damaged, or the disk is back."""
    path = layout.table("chunks", BATCH)

    assert put_aside(layout, path) is None
    assert path.is_file()


def test_a_damaged_table_that_somebody_works_at_is_left_to_them(layout: Layout) -> None:
    """They are about to replace it."""
    path = layout.table("chunks", BATCH)
    _truncate(path)
    lock = FileLock(layout.lock("chunks", BATCH))
    lock.acquire()
    try:
        assert put_aside(layout, path) is None
        assert path.is_file()
    finally:
        lock.release()


def test_a_table_that_is_gone_needs_no_putting_aside(layout: Layout) -> None:
    """Another process has put it aside already."""
    path = layout.table("chunks", BATCH)
    path.unlink()

    assert put_aside(layout, path) is None
