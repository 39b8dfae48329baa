"""Rows of a new file come from the old file and from parts, in plan order."""

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.errors import TableDamaged
from ingest_assets.core.items import Record
from ingest_assets.core.layout import Layout
from ingest_assets.storage.parquet import write_parquet
from ingest_assets.storage.table import ItemRows, Parts, merge_rows, row_offsets
from ingest_tests.storage.rows import SPEC, rows_of

NAMES = [f"d{number}" for number in range(9)]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all examples of a property test."""
    return tmp_path_factory.mktemp("merging")


def written(path: Path, lengths: dict[str, int]) -> dict[str, Record]:
    """Write a file with this many rows of each item, and return its records."""
    write_parquet(path, SPEC, [rows_of(item, 1, rows) for item, rows in lengths.items()], {})
    return {item: Record("f", rows) for item, rows in lengths.items()}


@given(
    st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2 * SPEC.rows_per_group), min_size=1),
    st.lists(st.sampled_from(NAMES), unique=True),
    st.sets(st.sampled_from(NAMES)),
)
def test_rows_are_in_the_requested_order_from_either_source(
    scratch: Path, lengths: dict[str, int], order: list[str], fresh: set[str]
) -> None:
    """Any order, any fresh items, any row groups."""
    path = scratch / "table.parquet"
    old, parts = written(path, lengths), Parts(Layout(scratch), SPEC, "b1")
    items = [item for item in order if item in fresh or item in old]
    for item in fresh:
        parts.write(item, "f", rows_of(item, 2, 3))

    merged = pa.concat_tables([SPEC.schema.empty_table(), *merge_rows(path, old, items, parts, fresh)])

    expected = [rows_of(item, 2, 3) if item in fresh else rows_of(item, 1, lengths[item]) for item in items]
    assert merged.to_pylist() == pa.concat_tables([SPEC.schema.empty_table(), *expected]).to_pylist()


def test_no_more_than_a_row_group_is_read_at_a_time(tmp_path: Path) -> None:
    """A table can be larger than the memory."""
    lengths = dict.fromkeys(NAMES, SPEC.rows_per_group)
    old = written(tmp_path / "table.parquet", lengths)

    with closing(ItemRows(tmp_path / "table.parquet", old)) as stored:
        pieces = [piece.num_rows for piece in stored.of(NAMES)]

    assert pieces == [SPEC.rows_per_group] * len(NAMES)


def test_an_error_of_damaged_rows_names_the_file(tmp_path: Path) -> None:
    """The footer is readable, the rows are not."""
    path = tmp_path / "table.parquet"
    old = written(path, {"d1": 3})
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(bytes(content))

    with closing(ItemRows(path, old)) as stored, pytest.raises(TableDamaged, match=path.name):
        list(stored.of(["d1"]))


def test_offsets_follow_the_order_of_items() -> None:
    """The footer's order is the row order."""
    records = {"b": Record("f", 3), "a": Record("f", 1), "c": Record("f", 2)}

    assert row_offsets(records) == {"b": 0, "a": 3, "c": 4}
    assert row_offsets({}) == {}
