"""The rows of a new file: what stays of the old one, and what the parts hold, in the order of the plan."""

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate, groupby
from pathlib import Path

import pyarrow as pa

from ingest_assets.model.items import Record
from ingest_assets.storage.damage import naming_damage
from ingest_assets.storage.parquet import RowReader
from ingest_assets.storage.parts import Parts


def row_offsets(records: Mapping[str, Record]) -> dict[str, int]:
    """The first row of each item; items stand in the footer in row order."""
    starts = accumulate((record.rows for record in records.values()), initial=0)
    return dict(zip(records, starts, strict=False))


class OldRows:
    """Rows of a table's items. What lies together is read together, one row group in memory at a time."""

    def __init__(self, path: Path, records: Mapping[str, Record]) -> None:
        self._records = records
        self._starts = row_offsets(records)
        self._reader = RowReader(path)

    def of(self, items: Iterable[str]) -> Iterator[pa.Table]:
        """Their rows, in this order."""
        for start, rows in _runs((self._starts[item], self._records[item].rows) for item in items):
            yield from self._reader.pieces(start, rows)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


def _runs(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Starts and lengths, with those that follow each other as one."""
    begin = length = 0
    for start, rows in spans:
        if start == begin + length:
            length += rows
            continue
        if length:
            yield begin, length
        begin, length = start, rows
    if length:
        yield begin, length


def merged_rows(
    path: Path, old: Mapping[str, Record], items: Iterable[str], parts: Parts, fresh: Collection[str]
) -> Iterator[pa.Table]:
    """Rows of the items in this order: of those that are fresh from their parts, of others from the file."""
    with contextlib.ExitStack() as stack:
        stored = stack.enter_context(contextlib.closing(OldRows(path, old))) if old else None
        for is_fresh, together in groupby(items, key=fresh.__contains__):
            if is_fresh or stored is None:
                yield from map(partial(_part_rows, parts), together)
            else:
                yield from stored.of(together)


def _part_rows(parts: Parts, item: str) -> pa.Table:
    with naming_damage(parts.path(item)):
        return parts.read(item)
