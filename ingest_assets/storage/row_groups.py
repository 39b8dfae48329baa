"""Row groups encoded side by side, and put together into the very file that one writer would have written.

Arrow encodes and compresses a row group in one thread, which for vectors is nearly all of the work. Here each
group becomes a small file of its own in memory, several at a time; their pages then follow each other in the
table's file. The bytes do not depend on how many threads there are.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.storage.moving import MAGIC, EncodedGroup, NotMovable, group_of, tail_of
from ingest_assets.storage.thrift import Struct

OpenWriter: TypeAlias = Callable[[Any], pq.ParquetWriter]

MOST_BYTES = 128 * 1024**2  # of rows that are encoded at a time; a group larger than that is alone


def write_row_groups(
    path: Path,
    open_writer: OpenWriter,
    groups: Iterable[pa.Table],
    key_values: Mapping[str, str],
    *,
    threads: int = 0,
) -> int:
    """Write each table as one row group and give the number of rows: the bytes are those of a single writer.

    A single writer it is where there is nothing to do side by side, or where groups cannot be moved. As many
    threads as asked for, 0 for all cores.
    """
    path.touch()  # where nothing can be written is told before a row is read
    coming = iter(groups)
    first = deque(islice(coming, 2))
    is_for_one = len(first) < 2 or not _is_movable(open_writer, first[0])
    together = _all_of(first, coming)
    if is_for_one:
        return _write_with_one(path, open_writer, together, key_values)
    return _write_side_by_side(path, open_writer, together, key_values, threads or _usable_cores())


def _all_of(first: deque[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Those taken already and the others; none stays in memory for having been the first."""
    while first:
        yield first.popleft()
    yield from rest


def _is_movable(open_writer: OpenWriter, group: pa.Table) -> bool:
    """Whether this Arrow, with these settings, writes groups that can be moved; all are alike, so one row tells."""
    if not group.num_rows:
        return False  # without a page it does not show
    try:
        _encode(open_writer, group.slice(0, 1))
    except NotMovable:
        return False
    return True


def _write_with_one(
    sink: Path | pa.BufferOutputStream,
    open_writer: OpenWriter,
    groups: Iterator[pa.Table],
    key_values: Mapping[str, str],
) -> int:
    rows = 0
    with open_writer(sink) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(group.num_rows, 1))
            rows += group.num_rows
        writer.add_key_value_metadata(dict(key_values))
    return rows


def _write_side_by_side(
    path: Path,
    open_writer: OpenWriter,
    groups: Iterator[pa.Table],
    key_values: Mapping[str, str],
    threads: int,
) -> int:
    pool = ThreadPoolExecutor(threads, thread_name_prefix="ingest-encode")
    try:
        with path.open("wb") as file:
            moved = _Moved(file)
            for encoded in _encoded(pool, threads, partial(_encode, open_writer), groups):
                moved.add(encoded)
            moved.end(_file_of(open_writer, None, key_values))
            return moved.rows
    finally:
        pool.shutdown(cancel_futures=True)  # waits for what has begun: no thread outlives the writing


def _encoded(
    pool: ThreadPoolExecutor,
    threads: int,
    encode: Callable[[pa.Table], EncodedGroup],
    groups: Iterator[pa.Table],
) -> Iterator[EncodedGroup]:
    """The groups encoded, in their order. No more are in memory than keep the threads busy."""
    waiting: deque[tuple[int, Future[EncodedGroup]]] = deque()
    for group in groups:
        size = group.nbytes
        while waiting and (len(waiting) > threads or size + sum(other for other, _ in waiting) > MOST_BYTES):
            yield waiting.popleft()[1].result()
        waiting.append((size, pool.submit(encode, group)))
        del group  # its thread has it
    while waiting:
        yield waiting.popleft()[1].result()


def _encode(open_writer: OpenWriter, group: pa.Table) -> EncodedGroup:
    return group_of(_file_of(open_writer, group, {}))


def _file_of(open_writer: OpenWriter, group: pa.Table | None, key_values: Mapping[str, str]) -> memoryview:
    """A whole Parquet file in memory."""
    sink = pa.BufferOutputStream()
    groups = iter([] if group is None else [group])
    _write_with_one(sink, open_writer, groups, key_values)
    return memoryview(sink.getvalue()).cast("B")  # Arrow's bytes are signed


class _Moved:
    """A file that grows by row groups."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._groups: list[Struct] = []
        self._position = file.write(MAGIC)
        self.rows = 0

    def add(self, group: EncodedGroup) -> None:
        self._groups.append(group.moved(self._position, len(self._groups)))
        self._position += self._file.write(group.pages)
        self.rows += group.rows

    def end(self, empty: memoryview) -> None:
        """Write the footer: that of a file by the same writer without rows, and the groups."""
        self._file.write(tail_of(empty, self._groups, self.rows))


def _usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
