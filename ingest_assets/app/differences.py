"""Where two homes' tables differ first: for people who must find out why equal inputs gave other bytes."""

import itertools
import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.core.identity import canonical_json, hash_file
from ingest_assets.core.layout import Layout
from ingest_assets.storage.parquet import RowReader

# Rows are wide: so many of both tables are in memory at once.
_ROWS_AT_ONCE = 64
_SHOWN_CHARS = 60
# Footers that are lists with an entry per document: only the first entry that differs is shown.
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
    one, other = (pq.read_metadata(path).metadata or {} for path in (expected, found))
    for key in sorted(key for key in {*one, *other} if key.startswith(b"ingest.")):
        name = key.decode()
        values = [footer.get(key, b"nothing").decode() for footer in (one, other)]
        if values[0] != values[1]:
            if name in _LISTS and key in one and key in other:
                values = _first_entries(*values)
            return _differs(at, f"footer {name}", *values)
    schemas = pq.read_schema(expected), pq.read_schema(found)
    return None if schemas[0] == schemas[1] else _differs(at, "schema", str(schemas[0]), str(schemas[1]))


def _first_entries(expected: str, found: str) -> list[str]:
    """Of two lists of items, the first entries that differ."""
    for pair in itertools.zip_longest(json.loads(expected), json.loads(found)):
        if pair[0] != pair[1]:
            return ["nothing" if entry is None else canonical_json(entry) for entry in pair]
    return [expected, found]


def _between_rows(at: Difference, expected: Path, found: Path) -> Difference | None:
    """The first row that differs, and of its columns the first in the schema's order.

    Values are compared as Python writes them: zeros of either sign differ, and NaN is equal to itself.
    """
    counts = [pq.read_metadata(path).num_rows for path in (expected, found)]
    with closing(RowReader(expected)) as left, closing(RowReader(found)) as right:
        for start in range(0, min(counts), _ROWS_AT_ONCE):
            rows = min(_ROWS_AT_ONCE, min(counts) - start)
            tables = left.read(start, rows), right.read(start, rows)
            for row, (one, other) in enumerate(zip(*(t.to_pylist() for t in tables), strict=True), start):
                column = next((name for name in one if repr(one[name]) != repr(other[name])), None)
                if column is not None:
                    column, values = _innermost(column, one[column], other[column])
                    difference = _differs(at, f"column {column}", *map(repr, values))
                    return replace(difference, row=row, column=column)
    return None if counts[0] == counts[1] else _differs(at, "number of rows", *map(str, counts))


def _innermost(name: str, one: Any, other: Any) -> tuple[str, tuple[Any, Any]]:
    """For lists, the first element that differs: `vector[17]`."""
    if isinstance(one, list) and isinstance(other, list):
        for at, pair in enumerate(zip(one, other, strict=False)):
            if repr(pair[0]) != repr(pair[1]):
                return f"{name}[{at}]", pair
    return name, (one, other)


def _differs(at: Difference, what: str, *texts: str) -> Difference:
    """Both values, short, from a little before where they part."""
    pairs = enumerate(zip(*texts, strict=False))
    parting = next((place for place, (one, other) in pairs if one != other), min(map(len, texts)))
    start = max(0, parting - _SHOWN_CHARS // 3) if max(map(len, texts)) > _SHOWN_CHARS else 0
    end = start + _SHOWN_CHARS
    one, other = (
        f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}" for text in texts
    )
    return replace(at, what=what, expected=one, found=other)
