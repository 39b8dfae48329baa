"""Threads that encode row groups: they end with the writing, and memory stays bounded."""

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest_assets.model.schemas import dense_spec
from ingest_assets.storage import encoding, parquet, row_groups
from ingest_assets.storage.parquet import write_parquet
from ingest_assets.storage.row_groups import LEAST_BYTES, write_row_groups
from ingest_tests.storage.any_rows import any_rows
from ingest_tests.storage.rows import SPEC, rows_of
from ingest_tests.storage.test_row_groups import of_one_writer


def encoding_threads() -> list[str]:
    """Those of this module that run now."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("ingest-encode")]


class Broken(Exception):
    """What the source of the rows may raise."""


def _rows_that_end_with(error: BaseException) -> Iterator[pa.Table]:
    yield rows_of("a", 2, 40)
    raise error


@pytest.mark.parametrize("error", [Broken(), OSError("disk"), KeyboardInterrupt()], ids=type)
def test_an_error_among_the_rows_leaves_the_old_table_and_no_thread(
    tmp_path: Path, error: BaseException
) -> None:
    """Also when somebody presses the keys in the middle."""
    path = tmp_path / "table.parquet"
    write_parquet(path, SPEC, [rows_of("a", 1, 40)], {})
    before = path.read_bytes()

    with pytest.raises(type(error)):
        write_parquet(path, SPEC, _rows_that_end_with(error), {})

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert encoding_threads() == []


def test_an_error_in_a_thread_leaves_the_old_table_and_no_thread(tmp_path: Path) -> None:
    """It is raised here as it was there; the groups that wait are not encoded any more."""
    path = tmp_path / "table.parquet"
    write_parquet(path, SPEC, [rows_of("a", 1, 40)], {})
    before = path.read_bytes()
    good = any_rows(pa.schema([("a", pa.int32())]), 3, 1)
    open_writer = partial(pq.ParquetWriter, schema=good.schema)

    with (
        pytest.raises(ValueError, match="schema"),
        parquet.replacing(path) as scratch,
    ):
        write_row_groups(scratch, open_writer, [good, good, pa.table({"b": ["x"]}), good, good], {})

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert encoding_threads() == []


def test_no_more_groups_are_in_memory_than_keep_the_threads_busy(tmp_path: Path) -> None:
    """A table is as long as it likes; the rows come from files, one group after the other."""
    size = 2**20
    held: list[int] = []

    def groups() -> Iterator[pa.Table]:
        for number in range(60):
            yield pa.table({"a": pa.array([bytes([number]) * size])})
            held.append(pa.total_allocated_bytes())

    open_writer = partial(pq.ParquetWriter, schema=pa.schema([("a", pa.binary())]), compression="none")
    before = pa.total_allocated_bytes()
    write_row_groups(tmp_path / "a.parquet", open_writer, groups(), {}, threads=2)

    # Four at most, and around each a page and a buffer that doubles as it grows.
    assert max(held) - before < 24 * size
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups == 60


def test_groups_that_are_large_are_encoded_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many cores and long documents must not fill the memory."""
    monkeypatch.setattr(encoding, "MOST_BYTES", 2**16)
    path = tmp_path / "a.parquet"
    in_file: list[int] = []

    def groups() -> Iterator[pa.Table]:
        for _ in range(6):
            in_file.append(path.stat().st_size >> 16)
            yield pa.table({"a": pa.array([bytes(2**16)])})

    open_writer = partial(
        pq.ParquetWriter, schema=pa.schema([("a", pa.binary())]), compression="none", use_dictionary=False
    )
    write_row_groups(path, open_writer, groups(), {}, threads=4)

    assert in_file == [0, 0, 1, 2, 3, 4]  # each is in the file before the next but one is asked for


def test_a_group_that_grows_in_parquet_is_written_all_the_same(tmp_path: Path) -> None:
    """One word for all rows takes no memory in Arrow, and its own place for each row in the file."""
    word = pa.DictionaryArray.from_arrays(pa.array([0] * 300, pa.int8()), ["long " * 1000])
    groups = [pa.table({"a": word})] * 5
    open_writer = partial(pq.ParquetWriter, schema=groups[0].schema, use_dictionary=False, compression="none")
    expected = of_one_writer(tmp_path / "one.parquet", open_writer, groups, {})

    write_row_groups(tmp_path / "side.parquet", open_writer, groups, {})

    assert len(expected) > 100 * sum(group.nbytes for group in groups)
    assert (tmp_path / "side.parquet").read_bytes() == expected


@pytest.mark.parametrize(("dim", "has_threads"), [(128, False), (512, True)])
def test_only_groups_that_are_worth_it_get_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dim: int, has_threads: bool
) -> None:
    """Hundreds of small ones, as of documents, would cost more than they gain; vectors always gain."""
    monkeypatch.setattr(row_groups, "LEAST_BYTES", LEAST_BYTES)
    spec = dense_spec(dim)
    vectors = pa.array(np.random.default_rng(1).random(spec.rows_per_group * dim, dtype=np.float32))
    group = any_rows(spec.schema.remove(3), spec.rows_per_group, 1).add_column(
        3, spec.schema.field(3), pa.FixedSizeListArray.from_arrays(vectors, type=spec.schema.field(3).type)
    )
    seen: list[str] = []

    def groups() -> Iterator[pa.Table]:
        for _ in range(4):
            yield group
            seen.extend(encoding_threads())

    open_writer = partial(parquet._writer, spec)
    write_row_groups(tmp_path / "side.parquet", open_writer, groups(), {})

    expected = of_one_writer(tmp_path / "one.parquet", open_writer, [group] * 4, {})
    assert bool(seen) == has_threads
    assert (tmp_path / "side.parquet").read_bytes() == expected
