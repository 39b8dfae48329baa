"""The first difference between two tables, down to the element of a vector."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest_assets.app.differences import Difference, first_difference, table_hashes
from ingest_assets.core.errors import ItemError, StageError
from ingest_assets.core.items import Record
from ingest_assets.core.layout import Layout
from ingest_assets.storage.parquet import Failure, Footer, write_parquet
from ingest_tests.storage.rows import BATCH, SPEC, rows_of

ASSET = SPEC.asset
ROWS = rows_of("a", 1, 200)


@pytest.fixture
def expected(tmp_path: Path) -> Layout:
    """A home with one table of 200 rows."""
    layout = Layout(tmp_path / "expected")
    put(layout)
    return layout


@pytest.fixture
def found(tmp_path: Path) -> Layout:
    """The home that is compared with it."""
    return Layout(tmp_path / "found")


def put(layout: Layout, rows: pa.Table = ROWS, footer: Footer | None = None, batch: str = BATCH) -> None:
    """Write a table, by default the expected one."""
    footer = footer or Footer("1", "config", {"a": Record("print", 200)})
    write_parquet(layout.table(ASSET, batch), SPEC, [rows], footer.as_metadata())


def changed(rows: pa.Table, column: str, row: int, value: object) -> pa.Table:
    """The rows with one cell changed."""
    values = rows[column].to_pylist()
    values[row] = value
    at = rows.schema.get_field_index(column)
    return rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type))


def test_equal_tables_have_no_difference(expected: Layout, found: Layout) -> None:
    """And the same hashes, by asset and batch."""
    put(found)

    assert first_difference(expected, found, [ASSET]) is None
    assert table_hashes(expected, [ASSET]) == table_hashes(found, [ASSET])
    assert list(table_hashes(found, [ASSET])) == [f"{ASSET}/{BATCH}"]


def test_one_changed_cell_is_named_by_row_and_column(expected: Layout, found: Layout) -> None:
    """After the first row group and after the rows that are compared first."""
    put(found, changed(ROWS, "body", 150, "other"))

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert (difference.asset, difference.batch) == (ASSET, BATCH)
    assert (difference.row, difference.column, difference.found) == (150, "body", "'other'")
    assert difference.as_line().startswith(f"{ASSET} {BATCH}: row 150, column body: 'a·1·150")


def test_of_two_changes_the_earlier_row_is_named(expected: Layout, found: Layout) -> None:
    """Regardless of the order of columns."""
    put(found, changed(changed(ROWS, "doc_id", 9, "b"), "terms", 8, ["x"]))

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert (difference.row, difference.column) == (8, "terms[0]")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (np.float32(0.0), np.float32(-0.0)),
        (np.float32(0.5), np.nextafter(np.float32(0.5), np.float32(1))),
        (np.float32(np.nan), np.float32(1.0)),
    ],
    ids=["sign of zero", "last bit", "not a number"],
)
def test_one_bit_of_a_vector_is_named_by_its_element(
    expected: Layout, found: Layout, before: np.float32, after: np.float32
) -> None:
    """0.0 and -0.0 are equal numbers, but not equal bytes."""
    nan = np.float32(np.nan)
    put(expected, changed(ROWS, "vector", 4, [nan, nan, before, nan]))
    put(found, changed(ROWS, "vector", 4, [nan, nan, after, nan]))

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert (difference.row, difference.column) == (4, "vector[2]")
    assert (difference.expected, difference.found) == (repr(float(before)), repr(float(after)))


def test_rows_in_another_order_differ_at_the_first_moved_row(expected: Layout, found: Layout) -> None:
    """The order of rows must be equal, too."""
    put(found, ROWS.take([0, 1, 3, 2, *range(4, 200)]))

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert (difference.row, difference.column) == (2, "ordinal")
    assert (difference.expected, difference.found) == ("2", "3")


def test_a_missing_row_differs_in_the_number_of_rows(expected: Layout, found: Layout) -> None:
    """All common rows are equal."""
    put(found, ROWS.slice(0, 199))

    difference = first_difference(expected, found, [ASSET])

    assert difference == Difference(ASSET, BATCH, "number of rows", "200", "199")


@pytest.mark.parametrize("absent", ["expected", "found"])
def test_a_missing_table_is_a_difference(expected: Layout, found: Layout, absent: str) -> None:
    """On either side."""
    put(found)
    (expected if absent == "expected" else found).table(ASSET, BATCH).unlink()

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert difference.what == "table"
    assert getattr(difference, absent) == "none"


def test_a_failure_in_only_one_table_is_named(expected: Layout, found: Layout) -> None:
    """Failures are data and must be equal, too."""
    error = StageError.of(ItemError("cut off"), stage="mixed", item_id="b")
    put(found, footer=Footer("1", "config", {"a": Record("print", 200)}, {"b": Failure("print", error)}))

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert (difference.what, difference.expected) == ("footer ingest.failures", "nothing")
    assert difference.found.startswith('["b","print",{"category":')


def test_an_item_with_another_fingerprint_is_named(expected: Layout, found: Layout) -> None:
    """The first entry that differs, not the whole list."""
    put(found, footer=Footer("1", "config", {"a": Record("other", 200)}))

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert (difference.what, difference.row) == ("footer ingest.items", None)
    assert (difference.expected, difference.found) == ('["a","print",200]', '["a","other",200]')


def test_equal_rows_in_other_bytes_differ_in_encoding(expected: Layout, found: Layout) -> None:
    """The file was written by another library or version."""
    path = found.table(ASSET, BATCH)
    path.parent.mkdir(parents=True)
    metadata = pq.read_metadata(expected.table(ASSET, BATCH)).metadata
    with pq.ParquetWriter(path, SPEC.schema, compression="none") as writer:
        writer.write_table(ROWS, row_group_size=7)
        writer.add_key_value_metadata({k: v for k, v in metadata.items() if k.startswith(b"ingest.")})

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert difference.as_line() == f"{ASSET} {BATCH}: same rows, different encoding"


def test_other_columns_are_a_difference_of_schema(expected: Layout, found: Layout) -> None:
    """Before any row is compared."""
    path = found.table(ASSET, BATCH)
    path.parent.mkdir(parents=True)
    metadata = pq.read_metadata(expected.table(ASSET, BATCH)).metadata
    with pq.ParquetWriter(path, ROWS.drop_columns(["title"]).schema) as writer:
        writer.add_key_value_metadata({k: v for k, v in metadata.items() if k.startswith(b"ingest.")})

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert difference.what == "schema"


def test_a_damaged_table_is_a_difference(expected: Layout, found: Layout) -> None:
    """It is truncated, as after a disk error."""
    put(found)
    path = found.table(ASSET, BATCH)
    path.write_bytes(path.read_bytes()[:100])

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert difference.what.startswith("table cannot be read (")


def test_assets_are_compared_in_the_given_order_and_batches_by_name(expected: Layout, found: Layout) -> None:
    """An upstream asset is reported first, regardless of its name."""
    put(expected, batch="2024-05-01-0002")
    put(found, changed(ROWS, "ordinal", 0, 5))
    put(found, changed(ROWS, "ordinal", 0, 5), batch="2024-05-01-0002")
    upstream = found.table("zebra", BATCH)
    upstream.parent.mkdir(parents=True)
    upstream.write_bytes(b"")

    first = first_difference(expected, found, ["zebra", ASSET])
    second = first_difference(expected, found, [ASSET])

    assert first is not None
    assert second is not None
    assert (first.asset, second.asset, second.batch) == ("zebra", ASSET, BATCH)


def test_long_values_are_shortened_around_the_difference(expected: Layout, found: Layout) -> None:
    """A line must not contain a whole document."""
    long = "x" * 5000
    put(expected, changed(ROWS, "body", 3, long + "A" + long))
    put(found, changed(ROWS, "body", 3, long + "B" + long))

    difference = first_difference(expected, found, [ASSET])

    assert difference is not None
    assert len(difference.as_line()) < 250
    assert ("xA" in difference.expected, "xB" in difference.found) == (True, True)
