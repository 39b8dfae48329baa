"""Row groups encoded in memory, several at a time: Arrow takes one thread for each."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.storage.moving import EncodedGroup, group_of

Sink: TypeAlias = Path | pa.NativeFile
OpenWriter: TypeAlias = Callable[[Sink], pq.ParquetWriter]

MOST_BYTES = 128 * 1024**2  # of rows that are encoded at a time; a group larger than that is alone
_SLACK = 2**18  # bytes for page headers and the footer of a group


def write_with_one(
    sink: Sink, open_writer: OpenWriter, groups: Iterable[pa.Table], key_values: Mapping[str, str]
) -> int:
    """Write each table as one row group, by a single writer, and give the number of rows."""
    rows = 0
    with open_writer(sink) as writer:
        for group in groups:
            writer.write_table(group, row_group_size=max(group.num_rows, 1))
            rows += group.num_rows
        writer.add_key_value_metadata(dict(key_values))
    return rows


def file_of(
    open_writer: OpenWriter, groups: Iterable[pa.Table], key_values: Mapping[str, str] | None = None
) -> memoryview:
    """A whole Parquet file in memory."""
    sink = pa.BufferOutputStream()
    write_with_one(sink, open_writer, groups, key_values or {})
    return _as_bytes(sink.getvalue())


def _as_bytes(buffer: pa.Buffer) -> memoryview:
    return memoryview(buffer).cast("B")  # Arrow's are signed


class SideBySide:
    """Encodes groups in threads. Nothing of it may be used after `close`, nor by two at once."""

    def __init__(self, open_writer: OpenWriter, threads: int) -> None:
        self._open_writer = open_writer
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ingest-encode")
        self._waiting: deque[tuple[int, Future[tuple[EncodedGroup, pa.Buffer]]]] = deque()
        self._rooms: list[pa.Buffer] = []

    def encoded(self, groups: Iterable[pa.Table]) -> Iterator[EncodedGroup]:
        """The groups in their order, each valid until the next is asked for.

        No more of them are in memory than keep the threads busy.
        """
        for group in groups:
            size = group.nbytes
            while self._is_full(size):
                yield from self._oldest()
            self._waiting.append((size, self._pool.submit(self._encode, group, size)))
            del group  # its thread has it
        while self._waiting:
            yield from self._oldest()

    def close(self) -> None:
        """Wait for what has begun and drop the rest: no thread goes on."""
        self._pool.shutdown(cancel_futures=True)

    def _is_full(self, size: int) -> bool:
        held = sum(other for other, _ in self._waiting)
        return bool(self._waiting) and (len(self._waiting) > self._threads or held + size > MOST_BYTES)

    def _oldest(self) -> Iterator[EncodedGroup]:
        group, room = self._waiting.popleft()[1].result()
        yield group
        self._rooms.append(room)

    def _encode(self, group: pa.Table, size: int) -> tuple[EncodedGroup, pa.Buffer]:
        room = self._room(size + size // 8 + _SLACK)
        sink = pa.FixedSizeBufferWriter(room)
        try:
            write_with_one(sink, self._open_writer, [group], {})
        except OSError:  # there is no file: the room was too small, which rows that grow in Parquet may find
            return group_of(file_of(self._open_writer, [group])), room
        return group_of(_as_bytes(room)[: sink.tell()]), room

    def _room(self, size: int) -> pa.Buffer:
        """Memory that was used before, where there is some: fresh memory would cost a fifth of the time."""
        room = self._rooms.pop() if self._rooms else None  # in one step, whichever threads look
        return room if room is not None and room.size >= size else pa.allocate_buffer(size)
