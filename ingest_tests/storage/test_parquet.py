"""Equal rows and equal footers give equal files, and rows are read across row groups."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.schemas import (
    ADMISSION,
    CHUNKS,
    DOCTAGS,
    DOCUMENTS,
    LEXICAL,
    LEXICAL_STATS,
    SPARSE,
    TableSpec,
    dense_spec,
)
from ingest_assets.storage.parquet import RowReader, write_parquet
from ingest_tests.storage.any_rows import any_rows
from ingest_tests.storage.rows import SPEC, rows_of

SPECS = [DOCUMENTS, DOCTAGS, ADMISSION, CHUNKS, dense_spec(6), SPARSE, LEXICAL, LEXICAL_STATS, SPEC]
cuts = st.lists(st.integers(0, 5), max_size=8)


def write(path: Path, tables: list[pa.Table]) -> bytes:
    """Write a file of these tables and return its bytes."""
    write_parquet(path, SPEC, tables, {"ingest.note": "ä"})
    return path.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for all examples of a property test."""
    return tmp_path_factory.mktemp("parquet")


@given(cuts)
def test_bytes_do_not_depend_on_how_the_rows_are_split(scratch: Path, sizes: list[int]) -> None:
    """Ten parts of one row and one part of ten rows are the same table."""
    whole = rows_of("a", 1, sum(sizes))
    pieces, start = [], 0
    for size in sizes:
        pieces.append(whole.slice(start, size))
        start += size

    assert write(scratch / "pieces.parquet", pieces) == write(scratch / "whole.parquet", [whole])


def test_nothing_in_a_file_depends_on_the_clock(tmp_path: Path) -> None:
    """The same rows, written at another time under another name, give the same bytes."""
    first = write(tmp_path / "a.parquet", [rows_of("a", 1, 7)])
    time.sleep(1.1)
    second = write(tmp_path / "b.parquet", [rows_of("a", 1, 7)])

    assert first == second


def test_groups_are_full_and_the_number_of_rows_is_returned(tmp_path: Path) -> None:
    """Only the last group can be shorter."""
    path = tmp_path / "a.parquet"

    written = write_parquet(path, SPEC, [rows_of("a", 0, 2), rows_of("b", 0, 6)], {})

    metadata = pq.read_metadata(path)
    assert written == 8
    assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == [3, 3, 2]


def test_a_table_without_rows_is_a_file_with_a_schema(tmp_path: Path) -> None:
    """A batch whose documents all failed still has a table."""
    path = tmp_path / "a.parquet"

    assert write_parquet(path, SPEC, [], {"ingest.note": "none"}) == 0

    assert pq.read_schema(path).names == SPEC.schema.names
    assert pq.read_metadata(path).metadata[b"ingest.note"] == b"none"


@given(st.data())
def test_any_run_of_rows_is_read_across_group_boundaries(scratch: Path, data: st.DataObject) -> None:
    """Any start, any length, all columns or some."""
    total = data.draw(st.integers(1, 10), "total")
    whole = rows_of("a", 1, total)
    columns = data.draw(st.sampled_from([None, ["doc_id", "vector"]]), "columns")
    write(scratch / "rows.parquet", [whole])
    reader = RowReader(scratch / "rows.parquet", columns)

    for _ in range(3):
        start = data.draw(st.integers(0, total - 1), "start")
        rows = data.draw(st.integers(1, total - start), "rows")
        read = reader.read(start, rows)

        expected = whole.slice(start, rows)
        assert read.column_names == (columns or SPEC.schema.names)
        assert read.to_pylist() == (expected.select(columns) if columns else expected).to_pylist()
    reader.close()


@pytest.mark.parametrize("start", [0, 2, 3, 4])
@pytest.mark.parametrize("columns", [None, ["doc_id", "vector"]])
def test_no_rows_are_read_in_the_same_columns(tmp_path: Path, columns: list[str] | None, start: int) -> None:
    """A caller that requests two columns gets two, also without rows."""
    write(tmp_path / "rows.parquet", [rows_of("a", 1, 4)])
    reader = RowReader(tmp_path / "rows.parquet", columns)

    read = reader.read(start, 0)
    reader.close()

    assert (read.num_rows, read.column_names) == (0, columns or SPEC.schema.names)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.asset)
def test_arrow_polars_and_duckdb_read_the_same_rows(tmp_path: Path, spec: TableSpec) -> None:
    """Each library interprets the footer in its own way."""
    path = tmp_path / "table.parquet"
    table = any_rows(spec.schema, 50, 1)

    write_parquet(path, replace(spec, rows_per_group=7), [table], {})

    name = spec.schema.names[0]
    values = table[name].to_pylist()
    assert pq.read_metadata(path).num_row_groups == 8
    assert str(pq.read_table(path).to_pylist()) == str(table.to_pylist())
    assert pl.read_parquet(path).equals(pl.DataFrame(table), null_equal=True)
    assert [row[0] for row in duckdb.sql(f"SELECT {name} FROM '{path}'").fetchall()] == values
    same_as_seventh = pl.scan_parquet(path).filter(pl.col(name) == values[7]).select(name).collect()
    assert same_as_seventh.height == values.count(values[7])


@pytest.mark.parametrize("error", [ValueError(), OSError("disk"), KeyboardInterrupt()], ids=type)
def test_an_error_among_the_rows_leaves_the_old_table(tmp_path: Path, error: BaseException) -> None:
    """Also if the user interrupts the write."""
    path = tmp_path / "table.parquet"
    before = write(path, [rows_of("a", 1, 40)])

    def broken() -> Iterator[pa.Table]:
        yield rows_of("a", 2, 40)
        raise error

    with pytest.raises(type(error)):
        write_parquet(path, SPEC, broken(), {})

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_vectors_are_fixed_size_lists_in_byte_stream_split(tmp_path: Path) -> None:
    """Readers map them to a matrix, and they compress."""
    spec = dense_spec(8)
    vectors = np.random.default_rng(1).random((20, 8), dtype=np.float32)
    table = pa.table(
        {
            "chunk_id": [str(n) for n in range(20)],
            "doc_id": ["a"] * 20,
            "ordinal": list(range(20)),
            "vector": list(vectors),
            "norm": [1.0] * 20,
        }
    ).cast(spec.schema)
    path = tmp_path / "dense.parquet"

    write_parquet(path, spec, [table], {})

    vector = pq.read_schema(path).field("vector")
    group = pq.read_metadata(path).row_group(0)
    columns = {group.column(n).path_in_schema: group.column(n) for n in range(group.num_columns)}
    stored = columns["vector.list.element"]
    assert pa.types.is_fixed_size_list(vector.type)
    assert (vector.type.list_size, vector.type.value_type) == (8, pa.float32())
    assert "BYTE_STREAM_SPLIT" in stored.encodings
    assert "RLE_DICTIONARY" not in stored.encodings
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert np.array_equal(np.stack(pq.read_table(path)["vector"].to_pylist()), vectors)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.asset)
def test_a_specs_column_choices_name_columns_it_has(tmp_path: Path, spec: TableSpec) -> None:
    """Parquet ignores an unknown column name silently, and the encoding is not applied."""
    path = tmp_path / "empty.parquet"
    write_parquet(path, spec, [], {})
    columns = {pq.ParquetFile(path).schema.column(n).path for n in range(len(pq.ParquetFile(path).schema))}

    assert set(spec.dictionary) | set(spec.byte_stream_split) <= columns
    assert set(spec.key) <= set(spec.schema.names)
    assert not spec.descriptions or set(spec.descriptions) == set(spec.schema.names)
