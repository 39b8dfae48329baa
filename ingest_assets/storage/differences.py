"""Where two homes' tables differ first: for people who must find out why equal inputs gave other bytes."""

import itertools
import json
import struct
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.model.identity import canonical_json, hash_file
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.parquet import RowReader

_ROWS_AT_ONCE = 64
_SHOWN_CHARS = 60
_LISTS = ("ingest.items", "ingest.failures")


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a table is not as expected; `row` counts from 0, `column` names what differs."""

    asset: str
    batch: str
    what: str
    expected: str = ""
    found: str = ""
    row: int | None = None
    column: str | None = None

    def as_line(self) -> str:
        """One line for a person."""
        place = f"{self.asset} {self.batch}: "
        if self.row is not None:
            place += f"row {self.row}, "
        values = f": {self.expected} expected, {self.found} found" if self.expected or self.found else ""
        return f"{place}{self.what}{values}"


def table_hashes(layout: Layout, assets: Sequence[str]) -> dict[str, str]:
    """sha256 of every table, by `<asset>/<batch>`, assets in the order given."""
    return {
        f"{asset}/{batch}": hash_file(layout.table(asset, batch))[0]
        for asset in assets
        for batch in _batches(layout, asset)
    }


def first_difference(expected: Layout, found: Layout, assets: Sequence[str]) -> Difference | None:
    """By asset in the order given, then batch, footer, row and column; None when every byte is equal."""
    for asset in assets:
        for batch in sorted({*_batches(expected, asset), *_batches(found, asset)}):
            paths = expected.table(asset, batch), found.table(asset, batch)
            difference = _between_files(Difference(asset, batch, ""), *paths)
            if difference is not None:
                return difference
    return None


def _batches(layout: Layout, asset: str) -> list[str]:
    return sorted(path.stem for path in layout.asset_folder(asset).glob("*.parquet"))


def _between_files(at: Difference, expected: Path, found: Path) -> Difference | None:
    there = ["a table" if path.is_file() else "none" for path in (expected, found)]
    if "none" in there:
        return _differs(at, "table", *there)
    if hash_file(expected)[0] == hash_file(found)[0]:
        return None
    try:
        same_rows = replace(at, what="same rows, different encoding")
        return _between_footers(at, expected, found) or _between_rows(at, expected, found) or same_rows
    except (pa.ArrowInvalid, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return replace(at, what=f"table cannot be read ({reason})")


def _between_footers(at: Difference, expected: Path, found: Path) -> Difference | None:
    one, other = _footer(expected), _footer(found)
    for key in sorted({*one, *other}):
        values = one.get(key, "nothing"), other.get(key, "nothing")
        if values[0] != values[1]:
            is_list = key in _LISTS and key in one and key in other
            return _differs(at, f"footer {key}", *(_first_entries(*values) if is_list else values))
    schemas = pq.read_schema(expected), pq.read_schema(found)
    return None if schemas[0] == schemas[1] else _differs(at, "schema", str(schemas[0]), str(schemas[1]))


def _footer(path: Path) -> dict[str, str]:
    metadata = pq.read_metadata(path).metadata or {}
    return {key.decode(): value.decode() for key, value in metadata.items() if key.startswith(b"ingest.")}


def _first_entries(expected: str, found: str) -> tuple[str, str]:
    """Of two lists of items, the first entries that differ."""
    for one, other in itertools.zip_longest(json.loads(expected), json.loads(found)):
        if one != other:
            return _entry(one), _entry(other)
    return expected, found


def _entry(entry: Any) -> str:
    return "nothing" if entry is None else canonical_json(entry)


def _between_rows(at: Difference, expected: Path, found: Path) -> Difference | None:
    counts = [pq.read_metadata(path).num_rows for path in (expected, found)]
    with closing(RowReader(expected)) as left, closing(RowReader(found)) as right:
        for start in range(0, min(counts), _ROWS_AT_ONCE):
            rows = min(_ROWS_AT_ONCE, min(counts) - start)
            difference = _between_tables(at, start, left.read(start, rows), right.read(start, rows))
            if difference is not None:
                return difference
    return None if counts[0] == counts[1] else _differs(at, "number of rows", *map(str, counts))


def _between_tables(at: Difference, start: int, one: pa.Table, other: pa.Table) -> Difference | None:
    """The first row that differs, and of its columns the first in the schema's order."""
    unequal = [
        (row, number)
        for number, pair in enumerate(zip(one.columns, other.columns, strict=True))
        if (row := _first_unequal(*pair)) is not None
    ]
    if not unequal:
        return None
    row, number = min(unequal)
    name, values = one.column_names[number], [table.column(number)[row].as_py() for table in (one, other)]
    column, values = _innermost(name, values)
    return replace(_differs(at, f"column {column}", *map(repr, values)), row=start + row, column=column)


def _first_unequal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> int | None:
    """The first row in which two columns of equal length differ by as much as a bit."""
    left, right = _as_bits(one.combine_chunks()), _as_bits(other.combine_chunks())
    if left.equals(right):
        return None
    low, high = 0, len(left) - 1  # the first difference is at `low` or after it, and not after `high`
    while low < high:
        middle = (low + high) // 2
        length = middle + 1 - low
        if left.slice(low, length).equals(right.slice(low, length)):
            low = middle + 1
        else:
            high = middle
    return low


def _as_bits(array: pa.Array) -> pa.Array:
    """Floats as whole numbers: zeros of either sign differ, and NaN is equal to itself."""
    kind = array.type
    if pa.types.is_floating(kind):
        return array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width])
    if pa.types.is_fixed_size_list(kind) and not array.null_count:
        return pa.FixedSizeListArray.from_arrays(_as_bits(array.flatten()), kind.list_size)
    if pa.types.is_list(kind) and not array.null_count:
        return pa.ListArray.from_arrays(array.offsets, _as_bits(array.values))
    return array


def _innermost(name: str, values: list[Any]) -> tuple[str, list[Any]]:
    """For lists, the first element that differs: `vector[17]`."""
    if all(isinstance(value, list) for value in values):
        for at, pair in enumerate(zip(*values, strict=False)):
            if _bytes(pair[0]) != _bytes(pair[1]):
                return f"{name}[{at}]", list(pair)
    return name, values


def _bytes(value: Any) -> bytes:
    return struct.pack("<d", value) if isinstance(value, float) else repr(value).encode()


def _differs(at: Difference, what: str, *texts: str) -> Difference:
    """Both values, short, from a little before where they part."""
    pairs = enumerate(zip(*texts, strict=False))
    parting = next((place for place, (one, other) in pairs if one != other), min(map(len, texts)))
    start = max(0, parting - _SHOWN_CHARS // 3) if max(map(len, texts)) > _SHOWN_CHARS else 0
    one, other = (_cut(text, start) for text in texts)
    return replace(at, what=what, expected=one, found=other)


def _cut(text: str, start: int) -> str:
    end = start + _SHOWN_CHARS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
