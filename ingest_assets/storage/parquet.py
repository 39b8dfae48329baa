"""Byte-deterministic Parquet: equal rows and equal footers give equal files."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.model.schemas import TableSpec
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.damage import naming_damage
from ingest_assets.storage.encoding import Sink
from ingest_assets.storage.row_groups import write_row_groups


def write_parquet(
    path: Path, spec: TableSpec, tables: Iterable[pa.Table], footer: Mapping[str, str], *, waits: bool = True
) -> int:
    """Write rows atomically and give their number. Row groups depend on the rows, not on how they came."""
    with replacing(path, waits=waits) as scratch:
        return write_row_groups(scratch, partial(_writer, spec), _regroup(tables, spec), footer)


def _writer(spec: TableSpec, sink: Sink) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        sink,
        spec.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=list(spec.dictionary),
        use_byte_stream_split=list(spec.byte_stream_split),
        write_page_index=False,
        write_statistics=_searched(spec) if spec.byte_stream_split else True,
    )


def _searched(spec: TableSpec) -> list[str]:
    """Columns that somebody may look for values in; the least number of any vector is nobody's question."""
    return [field.name for field in spec.schema if not pa.types.is_nested(field.type)]


def _regroup(tables: Iterable[pa.Table], spec: TableSpec) -> Iterable[pa.Table]:
    """Cut the stream into groups of exactly `rows_per_group` rows, the last one shorter."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        while rows >= spec.rows_per_group:
            merged = pa.concat_tables(waiting)
            yield merged.slice(0, spec.rows_per_group).combine_chunks()
            rest = merged.slice(spec.rows_per_group)
            waiting, rows = [rest], rest.num_rows
    if rows:
        yield pa.concat_tables(waiting).combine_chunks()


class RowReader:
    """Reads runs of rows from a Parquet file, cheap when they are asked for in ascending order."""

    def __init__(self, path: Path, columns: list[str] | None = None) -> None:
        self._path = path
        with naming_damage(path):
            self._file = pq.ParquetFile(path)
        self._columns = columns
        self._starts = [0]
        for group in range(self._file.num_row_groups):
            self._starts.append(self._starts[-1] + self._file.metadata.row_group(group).num_rows)
        self._cached: tuple[int, pa.Table] | None = None

    def read(self, start: int, rows: int) -> pa.Table:
        """The rows `start .. start + rows`."""
        pieces = list(self.pieces(start, rows))
        if pieces:
            return pa.concat_tables(pieces)
        nothing = self._file.schema_arrow.empty_table()
        return nothing.select(self._columns) if self._columns else nothing

    def pieces(self, start: int, rows: int) -> Iterator[pa.Table]:
        """The same rows one row group after the other, so that no more than one need be in memory."""
        stop = start + rows
        for group, (first, end) in enumerate(pairwise(self._starts)):
            if first < stop and end > start:
                begin = max(start, first)
                yield self._group(group).slice(begin - first, min(stop, end) - begin)

    def _group(self, group: int) -> pa.Table:
        if self._cached is None or self._cached[0] != group:
            with naming_damage(self._path):
                self._cached = (group, self._file.read_row_group(group, columns=self._columns))
        return self._cached[1]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
