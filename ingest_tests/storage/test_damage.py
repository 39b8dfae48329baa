"""Which errors mean that a table is damaged, and how it is moved to quarantine."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest_assets.core.errors import TableDamaged
from ingest_assets.core.layout import Layout
from ingest_assets.storage.locks import FileLock
from ingest_assets.storage.parquet import detect_damage, quarantine_if_damaged, read_footer

BATCH = "2026-01-01-0001"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A home with one complete table."""
    layout = Layout(tmp_path)
    path = layout.table("chunks", BATCH)
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"text": [f"hive {number}" for number in range(1000)]}), path)
    return layout


def _truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENOENT, errno.EMFILE, errno.ENFILE, errno.ESTALE])
def test_an_error_of_the_system_does_not_count_as_damage(tmp_path: Path, number: int) -> None:
    """A busy machine must not lose a valid table."""
    with pytest.raises(OSError, match=os.strerror(number)), detect_damage(tmp_path / "table"):
        raise OSError(number, os.strerror(number))


def test_a_table_that_cannot_be_opened_does_not_count_as_missing(tmp_path: Path) -> None:
    """Otherwise its documents would be computed again, and the intact table replaced."""
    path = tmp_path / "loop.parquet"
    path.symlink_to(path)

    with pytest.raises(OSError, match="symbolic links"):
        read_footer(path)


def test_too_little_memory_does_not_count_as_damage(tmp_path: Path) -> None:
    """The bytes were not read."""
    with pytest.raises(pa.ArrowMemoryError), detect_damage(tmp_path / "table"):
        raise pa.ArrowMemoryError("malloc of size 1099511627776 failed")


def test_an_input_output_error_counts_as_damage_and_names_the_file(tmp_path: Path) -> None:
    """The disk has bad sectors."""
    with pytest.raises(TableDamaged, match="table is damaged"), detect_damage(tmp_path / "table"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_damaged_table_is_kept_in_quarantine(layout: Layout) -> None:
    """The damage can be examined later."""
    path = layout.table("chunks", BATCH)
    _truncate(path)
    damaged = path.read_bytes()

    quarantined = quarantine_if_damaged(layout, path)

    assert quarantined is not None
    assert quarantined.read_bytes() == damaged
    assert not path.exists()


def test_a_readable_table_is_not_moved(layout: Layout) -> None:
    """It was replaced after the damage was reported, or the disk is available again."""
    path = layout.table("chunks", BATCH)

    assert quarantine_if_damaged(layout, path) is None
    assert path.is_file()


def test_a_damaged_table_with_a_lock_is_not_moved(layout: Layout) -> None:
    """The owner of the lock replaces it."""
    path = layout.table("chunks", BATCH)
    _truncate(path)
    lock = FileLock(layout.lock("chunks", BATCH))
    lock.acquire()
    try:
        assert quarantine_if_damaged(layout, path) is None
        assert path.is_file()
    finally:
        lock.release()


def test_a_missing_table_is_not_moved(layout: Layout) -> None:
    """Another process has moved it already."""
    path = layout.table("chunks", BATCH)
    path.unlink()

    assert quarantine_if_damaged(layout, path) is None
