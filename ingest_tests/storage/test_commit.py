"""A commit merges current old rows and new parts into one file, in plan order."""

import logging
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ingest_assets.core.errors import IngestError
from ingest_assets.core.items import Record
from ingest_assets.core.layout import Layout
from ingest_assets.storage.parquet import read_footer
from ingest_assets.storage.table import CommitResult, Parts, commit
from ingest_tests.storage.conftest import Child
from ingest_tests.storage.rows import BATCH, SPEC, commit_of, failure, fingerprint_of, rows_of

KILLED_IN_COMMIT = """
import sys, time
from pathlib import Path
import pyarrow as pa
from ingest_assets.storage import table as tables
from ingest_assets.core.layout import Layout
from ingest_tests.storage.rows import commit_of, fingerprint_of

def stuck(rows):
    for table in rows:
        yield table
        print("inside", flush=True)
        time.sleep(60)

write = tables.write_parquet
tables.write_parquet = lambda path, spec, rows, footer: write(path, spec, stuck(rows), footer)
tables.commit(Layout(Path(sys.argv[1])), commit_of({"a": fingerprint_of(2, 4), "b": fingerprint_of(1, 2)}))
"""


def stage(layout: Layout, item: str, version: int, rows: int) -> None:
    """Store an item's rows as a part."""
    Parts(layout, SPEC, BATCH).write(item, fingerprint_of(version, rows), rows_of(item, version, rows))


def stage_and_commit(layout: Layout, items: dict[str, tuple[int, int]]) -> CommitResult:
    """Stage every item and commit them all."""
    for item, (version, rows) in items.items():
        stage(layout, item, version, rows)
    return commit(layout, commit_of({item: fingerprint_of(*version) for item, version in items.items()}))


def stored(layout: Layout) -> list[tuple[str, str]]:
    """Return document and text of every row, in file order."""
    table = pq.ParquetFile(layout.table(SPEC.asset, BATCH)).read()
    return list(zip(table["doc_id"].to_pylist(), table["body"].to_pylist(), strict=True))


def expected(*items: tuple[str, int, int]) -> list[tuple[str, str]]:
    """Return document and text of the rows of these items."""
    return [(row["doc_id"], row["body"]) for item in items for row in rows_of(*item).to_pylist()]


def test_a_first_commit_writes_the_parts_in_plan_order(layout: Layout) -> None:
    """Neither the order of finishing nor that of file names matters."""
    for item in ("c", "a", "b"):
        stage(layout, item, 1, 2)

    done = commit(layout, commit_of({item: fingerprint_of(1, 2) for item in ("b", "c", "a")}))

    assert stored(layout) == expected(("b", 1, 2), ("c", 1, 2), ("a", 1, 2))
    assert (done.rows, done.changed, done.size_bytes) == (6, True, done.path.stat().st_size)
    assert not layout.parts(SPEC.asset, BATCH).exists()


def test_a_changed_item_is_replaced_and_its_neighbours_rows_are_kept(layout: Layout) -> None:
    """Only the changed item is computed; the other rows come from the old file."""
    stage_and_commit(layout, {"a": (1, 4), "b": (1, 2), "c": (1, 5)})
    stage(layout, "b", 2, 3)

    done = commit(
        layout, commit_of({"a": fingerprint_of(1, 4), "b": fingerprint_of(2, 3), "c": fingerprint_of(1, 5)})
    )

    assert stored(layout) == expected(("a", 1, 4), ("b", 2, 3), ("c", 1, 5))
    assert done.changed


def test_a_deleted_item_leaves_the_table(layout: Layout) -> None:
    """Readers need not filter or merge."""
    stage_and_commit(layout, {"a": (1, 4), "b": (1, 2)})

    done = commit(layout, commit_of({"b": fingerprint_of(1, 2)}))

    assert stored(layout) == expected(("b", 1, 2))
    assert (done.rows, done.changed) == (2, True)


def test_a_failed_item_has_no_rows_and_a_reason(layout: Layout) -> None:
    """Its old rows belong to other content and must be removed."""
    stage_and_commit(layout, {"a": (1, 4), "b": (1, 2)})
    broken = failure("a", "changed")

    commit(layout, commit_of({"a": "changed", "b": fingerprint_of(1, 2)}, {"a": broken}))

    footer = read_footer(layout.table(SPEC.asset, BATCH))
    assert stored(layout) == expected(("b", 1, 2))
    assert footer is not None
    assert footer.items == {"b": Record(fingerprint_of(1, 2), 2)}
    assert footer.failures == {"a": broken}


def test_when_nothing_changed_the_file_is_not_touched(layout: Layout) -> None:
    """Backups and file watchers must not see a change."""
    done = stage_and_commit(layout, {"a": (1, 4), "b": (1, 2)})
    before = done.path.stat()

    again = commit(layout, commit_of({"a": fingerprint_of(1, 4), "b": fingerprint_of(1, 2)}))

    after = done.path.stat()
    assert (again.changed, again.rows) == (False, 6)
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_size,
    )


def test_another_configuration_is_written_down_even_when_no_row_changed(layout: Layout) -> None:
    """The footer stores the hash of the settings."""
    stage_and_commit(layout, {"a": (1, 1)})

    done = commit(layout, commit_of({"a": fingerprint_of(1, 1)}, config_hash="other"))

    footer = read_footer(done.path)
    assert done.changed
    assert footer is not None
    assert footer.config_hash == "other"


def test_an_item_with_neither_rows_nor_failure_stops_the_commit(layout: Layout) -> None:
    """A document must never disappear silently; the old table stays."""
    done = stage_and_commit(layout, {"a": (1, 4)})
    before = done.path.read_bytes()

    with pytest.raises(IngestError, match="1 planned items have neither rows nor a failure, first 'b'"):
        commit(layout, commit_of({"a": fingerprint_of(1, 4), "b": fingerprint_of(1, 1)}))

    assert done.path.read_bytes() == before


@pytest.mark.parametrize("keep", [0, 50, -20])
def test_a_damaged_table_is_rebuilt(layout: Layout, caplog: pytest.LogCaptureFixture, keep: int) -> None:
    """It counts as missing, and a warning is logged."""
    path = stage_and_commit(layout, {"a": (1, 4)}).path
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])

    with caplog.at_level(logging.WARNING):
        done = stage_and_commit(layout, {"a": (1, 4)})

    assert done.path.read_bytes() == whole
    assert f"{path} is damaged" in caplog.text


@pytest.mark.parametrize("victim", ["part", "table"])
def test_rows_that_cannot_be_read_are_named_in_one_line(layout: Layout, victim: str) -> None:
    """With a bad sector in the rows the footer is readable; the error says what to do."""
    stage_and_commit(layout, {"a": (1, 4)})
    stage(layout, "b", 1, 4)
    parts = Parts(layout, SPEC, BATCH)
    path = parts.path("b") if victim == "part" else layout.table(SPEC.asset, BATCH)
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)

    with pytest.raises(IngestError):
        commit(layout, commit_of({"a": fingerprint_of(1, 4), "b": fingerprint_of(1, 4)}))


def test_a_commit_killed_half_way_costs_nothing(layout: Layout, child: Child) -> None:
    """The old table and the parts stay, and the next commit succeeds."""
    path = stage_and_commit(layout, {"a": (1, 4), "b": (1, 2)}).path
    before = path.read_bytes()
    stage(layout, "a", 2, 4)
    killed = child(KILLED_IN_COMMIT, layout.home)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "inside\n"

    killed.kill()
    killed.wait()
    after_kill = path.read_bytes()
    scratch = [p for p in path.parent.iterdir() if p.suffix == ".tmp"]
    commit(layout, commit_of({"a": fingerprint_of(2, 4), "b": fingerprint_of(1, 2)}))

    assert after_kill == before
    assert len(scratch) == 1
    assert stored(layout) == expected(("a", 2, 4), ("b", 1, 2))
    assert [p.name for p in path.parent.glob("*") if p.is_file()] == [path.name]


def test_an_empty_batch_has_an_empty_table(layout: Layout) -> None:
    """All its documents were deleted."""
    stage_and_commit(layout, {"a": (1, 4)})

    done = commit(layout, commit_of({}))

    assert (done.rows, done.changed) == (0, True)
    assert stored(layout) == []


def test_tables_of_a_batch_do_not_depend_on_the_home(tmp_path: Path) -> None:
    """Equal inputs give byte-equal files in each home."""
    tables = [
        stage_and_commit(Layout(tmp_path / home), {"a": (1, 4), "b": (2, 1)}).path.read_bytes()
        for home in ("one", "two")
    ]

    assert tables[0] == tables[1]
