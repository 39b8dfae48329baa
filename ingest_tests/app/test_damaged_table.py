"""Tables that a look finds damaged: put aside, or looked at again when somebody was faster."""

import shutil
from pathlib import Path

import pytest

from ingest_assets.app.home import Home
from ingest_assets.app.repair import mended
from ingest_assets.core.errors import TableDamaged
from ingest_assets.core.schemas import CHUNKS
from ingest_assets.storage.parquet import require_whole
from ingest_tests.app.tables import BATCHES, chunk_rows, put

BATCH = BATCHES[0]


@pytest.fixture
def table(home: Home) -> Path:
    """A whole table of the home."""
    put(home, CHUNKS, BATCH, {"d": chunk_rows("d", ["a", "b"])})
    return home.layout.table("chunks", BATCH)


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_damaged_table_is_put_aside_and_the_rest_is_found(home: Home, table: Path) -> None:
    """All that it held is derived: the look finds a table that is not there."""
    _cut_off(table)

    def look() -> list[Path]:
        found = [path for path in (table,) if path.exists()]
        require_whole(found)
        return found

    assert mended(home, look) == []


def test_a_table_that_was_replaced_meanwhile_is_looked_at_again(home: Home, table: Path) -> None:
    """Another run made it anew between the look and the putting aside."""
    whole = table.with_suffix(".whole")
    shutil.copy(table, whole)
    _cut_off(table)

    def look() -> str:
        try:
            require_whole([table])
        except TableDamaged:
            whole.replace(table)
            raise
        return "found"

    assert mended(home, look) == "found"
    assert table.is_file()


def test_a_table_that_stays_damaged_for_one_reader_alone_is_told_of(home: Home, table: Path) -> None:
    """Looking again for ever helps nobody, and a table that proves to be whole is not moved."""
    looks = []

    def look() -> None:
        looks.append(table)
        raise TableDamaged.at(table, OSError("no reason that others see"))

    with pytest.raises(TableDamaged, match="no reason that others see"):
        mended(home, look)
    assert len(looks) == 2
    assert table.is_file()
