"""Row groups encoded side by side make, byte for byte, the file of a single writer."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest_assets.model.schemas import (
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
from ingest_assets.storage import parquet
from ingest_assets.storage.encoding import OpenWriter
from ingest_assets.storage.parquet import write_parquet
from ingest_assets.storage.row_groups import write_row_groups
from ingest_tests.storage.any_rows import any_rows
from ingest_tests.storage.rows import SPEC

TYPES = [
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.bool_(),
    pa.int32(),
    pa.uint64(),
    pa.float32(),
    pa.timestamp("us", tz="UTC"),
    pa.null(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.list_(pa.string()),
    pa.list_(pa.list_(pa.int64())),
    pa.list_(pa.field("element", pa.float32(), nullable=False), 3),
    pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.list_(pa.string()))]),
]
SETTINGS = {
    "compression": ["none", "snappy", "zstd"],
    "use_dictionary": [True, False],
    "write_statistics": [True, False],
    "data_page_size": [64, 2**20],
    "dictionary_pagesize_limit": [32, 2**20],
    "write_batch_size": [3, 1024],
    "data_page_version": ["1.0", "2.0"],
    "write_page_checksum": [False, True],
    "store_schema": [True, False],
    "version": ["1.0", "2.6"],
    "write_page_index": [False, False, False, True],  # the last cannot be moved
}
SPECS = [DOCUMENTS, DOCTAGS, ADMISSION, CHUNKS, dense_spec(6), SPARSE, LEXICAL, LEXICAL_STATS, SPEC]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for property tests, which share one."""
    return tmp_path_factory.mktemp("groups")


def of_one_writer(
    path: Path, open_writer: OpenWriter, groups: list[pa.Table], notes: dict[str, str]
) -> bytes:
    """The file that Arrow alone makes."""
    with open_writer(path) as writer:
        for group in groups:
            writer.write_table(group)
        writer.add_key_value_metadata(notes)
    return path.read_bytes()


@st.composite
def schemas(draw: st.DrawFn) -> pa.Schema:
    """Some columns, nullable or not, with metadata or without."""
    kinds = draw(st.lists(st.sampled_from(TYPES), max_size=4))
    fields = [
        pa.field(f"c{number}", kind, nullable=pa.types.is_null(kind) or draw(st.booleans()))
        for number, kind in enumerate(kinds)
    ]
    return pa.schema(fields, draw(st.sampled_from([None, {"who": "ä"}])))


@settings(max_examples=150, deadline=None)
@given(
    schema=schemas(),
    sizes=st.lists(st.integers(0, 60), max_size=6),
    chosen=st.fixed_dictionaries({name: st.sampled_from(values) for name, values in SETTINGS.items()}),
    notes=st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=30), max_size=2),
    threads=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_the_file_is_that_of_one_writer(
    scratch: Path,
    schema: pa.Schema,
    sizes: list[int],
    chosen: dict[str, Any],
    notes: dict[str, str],
    threads: int,
    seed: int,
) -> None:
    """Whatever the columns, the groups, the settings and the number of threads."""
    groups = [any_rows(schema, size, seed + number) for number, size in enumerate(sizes)]
    open_writer = partial(pq.ParquetWriter, schema=schema, **chosen)
    expected = of_one_writer(scratch / "one.parquet", open_writer, groups, notes)

    rows = write_row_groups(scratch / "side.parquet", open_writer, groups, notes, threads=threads)

    assert (scratch / "side.parquet").read_bytes() == expected
    assert rows == sum(group.num_rows for group in groups)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.asset)
@pytest.mark.parametrize("rows", [0, 1, 7, 8, 50])
def test_every_table_of_the_product_is_as_one_writer_makes_it(
    tmp_path: Path, spec: TableSpec, rows: int
) -> None:
    """So that no table in a home that is there already changes."""
    small = replace(spec, rows_per_group=7)
    table = any_rows(spec.schema, rows, rows)
    groups = [table.slice(start, 7) for start in range(0, rows, 7)]
    notes = {"ingest.items": "[]", "ingest.note": "ä"}
    expected = of_one_writer(tmp_path / "one.parquet", partial(parquet._writer, small), groups, notes)

    write_parquet(tmp_path / "side.parquet", small, [table], notes)

    assert (tmp_path / "side.parquet").read_bytes() == expected


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.asset)
def test_everybody_reads_the_same_rows(tmp_path: Path, spec: TableSpec) -> None:
    """Arrow, Polars and DuckDB each go by the footer in their own way."""
    path = tmp_path / "table.parquet"
    table = any_rows(spec.schema, 50, 1)

    write_parquet(path, replace(spec, rows_per_group=7), [table], {})

    name = spec.schema.names[0]
    wanted = table[name].to_pylist()
    assert pq.read_metadata(path).num_row_groups == 8
    assert pq.read_table(path).replace_schema_metadata(None).to_pydict().keys() == table.to_pydict().keys()
    assert str(pq.read_table(path).to_pylist()) == str(table.to_pylist())
    assert pl.read_parquet(path).equals(pl.DataFrame(table), null_equal=True)
    assert [row[0] for row in duckdb.sql(f"SELECT {name} FROM '{path}'").fetchall()] == wanted
    seven = pl.scan_parquet(path).filter(pl.col(name) == wanted[7]).select(name).collect()
    assert seven.height == wanted.count(wanted[7])


@pytest.mark.slow
def test_more_groups_than_have_a_number_are_as_one_writer_makes_them(tmp_path: Path) -> None:
    """A group's own number is a short one: Arrow leaves it out where it does not fit."""
    groups = [pa.table({"a": [1]})] * 32_770
    open_writer = partial(pq.ParquetWriter, schema=groups[0].schema)
    expected = of_one_writer(tmp_path / "one.parquet", open_writer, groups, {})

    write_row_groups(tmp_path / "side.parquet", open_writer, groups, {})

    assert (tmp_path / "side.parquet").read_bytes() == expected
