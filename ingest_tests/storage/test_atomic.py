"""A file is replaced completely or not at all."""

from pathlib import Path

import pytest

from ingest_assets.storage.atomic import replacing, sweep_scratch
from ingest_tests.storage.conftest import Child

HALF_WRITER = """
import sys, time
from pathlib import Path
from ingest_assets.storage.atomic import replacing
with replacing(Path(sys.argv[1])) as scratch:
    with scratch.open("w") as stream:
        stream.write("half of the new")
        stream.flush()
        print("inside", flush=True)
        time.sleep(60)
"""


def names(folder: Path) -> list[str]:
    """Return the names in a folder, with hidden files."""
    return sorted(path.name for path in folder.iterdir())


def break_off(path: Path, error: type[BaseException]) -> None:
    """Write a part of the new content, then fail."""
    with replacing(path) as scratch:
        scratch.write_text("half of the new")
        raise error


def test_a_finished_block_replaces_the_file(tmp_path: Path) -> None:
    """The folder is created if it is missing."""
    path = tmp_path / "new" / "folder" / "table.parquet"

    for content in ("old", "new"):
        with replacing(path) as scratch:
            scratch.write_text(content)

    assert path.read_text() == "new"
    assert names(path.parent) == ["table.parquet"]


def test_the_old_file_stays_until_the_block_ends(tmp_path: Path) -> None:
    """A reader never sees a half-written table."""
    path = tmp_path / "table.parquet"
    path.write_text("old")

    with replacing(path) as scratch:
        scratch.write_text("new")
        seen = path.read_text()

    assert seen == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_crash_mid_write_leaves_the_old_table(tmp_path: Path, error: type[BaseException]) -> None:
    """Any exception ends the block early."""
    path = tmp_path / "table.parquet"
    path.write_text("old")

    with pytest.raises(error):
        break_off(path, error)

    assert path.read_text() == "old"
    assert names(tmp_path) == ["table.parquet"]


def test_a_block_that_wrote_nothing_leaves_the_old_table(tmp_path: Path) -> None:
    """A missing scratch file must not replace the table."""
    path = tmp_path / "table.parquet"
    path.write_text("old")

    with pytest.raises(FileNotFoundError), replacing(path):
        pass

    assert path.read_text() == "old"


def test_a_killed_writer_leaves_the_old_table_and_a_scratch_that_is_swept(
    tmp_path: Path, child: Child
) -> None:
    """Power may fail at any byte."""
    path = tmp_path / "table.parquet"
    path.write_text("old")
    (tmp_path / "table.parquet.notes.tmp").write_text("somebody else's")
    writer = child(HALF_WRITER, path)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "inside\n"

    writer.kill()
    writer.wait()

    assert path.read_text() == "old"
    leftovers = [name for name in names(tmp_path) if name.startswith(".")]
    assert len(leftovers) == 1
    assert not list(tmp_path.glob("*.parquet.tmp"))
    assert sweep_scratch(path) == 1
    assert names(tmp_path) == ["table.parquet", "table.parquet.notes.tmp"]


def test_sweeping_one_table_leaves_the_others_scratch_alone(tmp_path: Path) -> None:
    """The other table can have an active writer."""
    with replacing(tmp_path / "b.parquet") as scratch:
        scratch.write_text("at work")
        swept = sweep_scratch(tmp_path / "a.parquet")

    assert swept == 0
    assert (tmp_path / "b.parquet").read_text() == "at work"
