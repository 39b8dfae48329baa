"""Row groups encoded side by side, and put together into the very file that one writer would have written.

Arrow encodes and compresses a row group in one thread, which for vectors is nearly all of the work. Here each
group becomes a small file of its own in memory, several at a time; their pages then follow each other in the
table's file. The bytes do not depend on how many threads there are.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import IO

import pyarrow as pa

from ingest_assets.storage.encoding import OpenWriter, SideBySide, file_of, write_with_one
from ingest_assets.storage.moving import MAGIC, EncodedGroup, NotMovable, group_of, tail_of
from ingest_assets.storage.thrift import Struct

LEAST_BYTES = 4 * 1024**2  # of a group's rows: to hand over one costs as much as to encode a megabyte


def write_row_groups(
    path: Path,
    open_writer: OpenWriter,
    groups: Iterable[pa.Table],
    key_values: Mapping[str, str],
    *,
    threads: int = 0,
) -> int:
    """Write each table as one row group and give the number of rows: the bytes are those of a single writer.

    A single writer it is where there is little to do side by side, or where groups cannot be moved. As many
    threads as asked for, 0 for all cores.
    """
    path.touch()  # where nothing can be written is told before a row is read
    coming = iter(groups)
    first = deque(islice(coming, 2))
    is_for_several = len(first) > 1 and _is_worth_it(first[0]) and _is_movable(open_writer, first[0])
    together = _all_of(first, coming)
    if not is_for_several:
        return write_with_one(path, open_writer, together, key_values)
    return _write_side_by_side(path, open_writer, together, key_values, threads or _usable_cores())


def _all_of(first: deque[pa.Table], rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Those taken already and the others; none stays in memory for having been the first."""
    while first:
        yield first.popleft()
    yield from rest


def _is_worth_it(group: pa.Table) -> bool:
    """Without a row it would not even show whether it can be moved."""
    return bool(group.num_rows) and group.nbytes >= LEAST_BYTES


def _is_movable(open_writer: OpenWriter, group: pa.Table) -> bool:
    """Whether this Arrow, with these settings, writes groups that can be moved: one row tells of all."""
    try:
        group_of(file_of(open_writer, [group.slice(0, 1)]))
    except NotMovable:
        return False
    return True


def _write_side_by_side(
    path: Path,
    open_writer: OpenWriter,
    groups: Iterator[pa.Table],
    key_values: Mapping[str, str],
    threads: int,
) -> int:
    with path.open("wb") as file, closing(SideBySide(open_writer, threads)) as side_by_side:
        moved = _Moved(file)
        for encoded in side_by_side.encoded(groups):
            moved.add(encoded)
        moved.end(file_of(open_writer, [], key_values))
        return moved.rows


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
