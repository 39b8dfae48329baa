"""Failures are removed from a table's footer, and nothing else of the table changes."""

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest_assets.core.errors import TableDamaged
from ingest_assets.core.layout import Layout
from ingest_assets.storage.parquet import read_footer
from ingest_assets.storage.table import Parts, forget_failures
from ingest_tests.storage.conftest import Child
from ingest_tests.storage.rows import BATCH, SPEC, fingerprint_of, rows_of
from ingest_tests.storage.test_determinism import NAMES, State, apply, states

KILLED_IN_FORGET = """
import sys, time
from pathlib import Path
from ingest_assets.storage import table as forgetting
from ingest_assets.core.layout import Layout
from ingest_tests.storage.rows import BATCH, SPEC

def stuck(rows):
    for table in rows:
        yield table
        print("inside", flush=True)
        time.sleep(60)

write = forgetting.write_parquet
forgetting.write_parquet = lambda path, spec, rows, footer: write(path, spec, stuck(rows), footer)
forgetting.forget_failures(Layout(Path(sys.argv[1])), SPEC, BATCH, ["docs:b"])
"""
MIXED: State = {"docs:a": (1, 4), "docs:b": None, "docs:ü": (2, 5), "docs:d": None}


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the homes of all examples."""
    return tmp_path_factory.mktemp("homes")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(states, st.sets(st.sampled_from(NAMES)))
def test_only_the_given_failures_are_removed(homes: Path, state: State, named: set[str]) -> None:
    """The file is the same as if these items had never been planned."""
    shutil.rmtree(homes)
    lived, fresh = Layout(homes / "lived"), Layout(homes / "fresh")
    table = apply(lived, state, again=False)
    expected = {item: result for item, result in state.items() if result is not None or item not in named}

    removed = forget_failures(lived, SPEC, BATCH, named)

    assert removed == [item for item, result in state.items() if result is None and item in named]
    assert table.read_bytes() == apply(fresh, expected, again=False).read_bytes()


def test_without_such_a_failure_the_file_is_not_touched(layout: Layout) -> None:
    """A missing file is not created."""
    without_file = forget_failures(layout, SPEC, BATCH, ["docs:a"])
    path = apply(layout, MIXED, again=False)
    before = path.stat()

    without_failure = forget_failures(layout, SPEC, BATCH, ["docs:a", "docs:nowhere"])

    assert (without_file, without_failure) == ([], [])
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_parts_that_are_not_committed_stay(layout: Layout) -> None:
    """They are finished items of a stopped run."""
    apply(layout, MIXED, again=False)
    parts = Parts(layout, SPEC, BATCH)
    parts.write("docs:b", fingerprint_of(3, 2), rows_of("docs:b", 3, 2))

    forget_failures(layout, SPEC, BATCH, ["docs:d"])

    assert list(parts.records()) == ["docs:b"]


def test_columns_of_other_settings_are_kept_as_they_were_written(layout: Layout) -> None:
    """The configured model can have another dimension now; the next run rebuilds those rows."""
    path = apply(layout, MIXED, again=False)
    before = pq.read_table(path)
    vector = pa.field("vector", pa.list_(pa.float32(), 9), nullable=False)
    at = SPEC.schema.get_field_index("vector")

    forget_failures(layout, replace(SPEC, schema=SPEC.schema.set(at, vector)), BATCH, ["docs:b"])

    assert pq.read_table(path).equals(before)


def test_a_damaged_table_is_named_and_not_changed(layout: Layout) -> None:
    """Its footer is readable and its rows are not; only a run can rebuild it."""
    path = apply(layout, MIXED, again=False)
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)

    with pytest.raises(TableDamaged, match=path.name):
        forget_failures(layout, SPEC, BATCH, ["docs:b"])

    assert path.read_bytes() == content


def test_being_killed_half_way_costs_nothing(layout: Layout, child: Child) -> None:
    """The old table stays complete, and the next call succeeds."""
    path = apply(layout, MIXED, again=False)
    before = path.read_bytes()
    killed = child(KILLED_IN_FORGET, layout.home)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "inside\n"

    killed.kill()
    killed.wait()
    after_kill = path.read_bytes()
    forget_failures(layout, SPEC, BATCH, ["docs:b"])

    footer = read_footer(path)
    assert after_kill == before
    assert footer is not None
    assert list(footer.failures) == ["docs:d"]
    assert [p.name for p in path.parent.glob("*") if p.is_file()] == [path.name]
