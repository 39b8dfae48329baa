"""Find the first difference between the tables of two homes, to explain why their bytes differ."""

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

# Rows compared at a time. Rows are wide, and both tables' are in memory.
_ROWS_AT_ONCE = 64
_SHOWN_CHARS = 60
# Footer values with an entry per document: only the first different entry is shown.
_FOOTER_LISTS = ("ingest.items", "ingest.failures")


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference from the expected table; `row` counts from 0."""

    asset: str
    batch: str
    what: str
    expected: str = ""
    found: str = ""
    row: int | None = None
    column: str | None = None

    def as_line(self) -> str:
        """Return the difference as one line."""
        place = f"{self.asset} {self.batch}: "
        if self.row is not None:
            place += f"row {self.row}, "
        values = f": {self.expected} expected, {self.found} found" if self.expected or self.found else ""
        return f"{place}{self.what}{values}"


def table_hashes(layout: Layout, assets: Sequence[str]) -> dict[str, str]:
    """Return the sha256 of every table by `<asset>/<batch>`, in the order of `assets`."""
    return {
        f"{asset}/{batch}": hash_file(layout.table(asset, batch))[0]
        for asset in assets
        for batch in _batches(layout, asset)
    }


def first_difference(expected: Layout, found: Layout, assets: Sequence[str]) -> Difference | None:
    """Return the first difference by asset (in the given order), batch, footer, row and column, or None."""
    for asset in assets:
        for batch in sorted({*_batches(expected, asset), *_batches(found, asset)}):
            paths = expected.table(asset, batch), found.table(asset, batch)
            difference = _between_files(Difference(asset, batch, ""), *paths)
            if difference is not None:
                return difference
    return None


def _batches(layout: Layout, asset: str) -> list[str]:
    return sorted(path.stem for path in layout.asset_folder(asset).glob("*.parquet"))


def _between_files(place: Difference, expected: Path, found: Path) -> Difference | None:
    presence = ["a table" if path.is_file() else "none" for path in (expected, found)]
    if "none" in presence:
        return _differs(place, "table", *presence)
    if hash_file(expected)[0] == hash_file(found)[0]:
        return None
    try:
        same_rows = replace(place, what="same rows, different encoding")
        return _between_footers(place, expected, found) or _between_rows(place, expected, found) or same_rows
    except (pa.ArrowInvalid, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return replace(place, what=f"table cannot be read ({reason})")


def _between_footers(place: Difference, expected: Path, found: Path) -> Difference | None:
    left, right = (pq.read_metadata(path).metadata or {} for path in (expected, found))
    for key in sorted(key for key in {*left, *right} if key.startswith(b"ingest.")):
        name = key.decode()
        values = [footer.get(key, b"nothing").decode() for footer in (left, right)]
        if values[0] != values[1]:
            if name in _FOOTER_LISTS and key in left and key in right:
                values = _first_entries(*values)
            return _differs(place, f"footer {name}", *values)
    schemas = pq.read_schema(expected), pq.read_schema(found)
    return None if schemas[0] == schemas[1] else _differs(place, "schema", str(schemas[0]), str(schemas[1]))


def _first_entries(expected: str, found: str) -> list[str]:
    """Return the first pair of different entries of two JSON lists."""
    for pair in itertools.zip_longest(json.loads(expected), json.loads(found)):
        if pair[0] != pair[1]:
            return ["nothing" if entry is None else canonical_json(entry) for entry in pair]
    return [expected, found]


def _between_rows(place: Difference, expected: Path, found: Path) -> Difference | None:
    """Return the first different row, and its first different column in schema order.

    Values are compared by `repr`, so 0.0 and -0.0 differ and NaN equals itself.
    """
    counts = [pq.read_metadata(path).num_rows for path in (expected, found)]
    with closing(RowReader(expected)) as expected_rows, closing(RowReader(found)) as found_rows:
        for start in range(0, min(counts), _ROWS_AT_ONCE):
            rows = min(_ROWS_AT_ONCE, min(counts) - start)
            tables = expected_rows.read(start, rows), found_rows.read(start, rows)
            for row, (one, other) in enumerate(zip(*(t.to_pylist() for t in tables), strict=True), start):
                column = next((name for name in one if repr(one[name]) != repr(other[name])), None)
                if column is not None:
                    column, values = _innermost(column, one[column], other[column])
                    difference = _differs(place, f"column {column}", *map(repr, values))
                    return replace(difference, row=row, column=column)
    return None if counts[0] == counts[1] else _differs(place, "number of rows", *map(str, counts))


def _innermost(name: str, one: Any, other: Any) -> tuple[str, tuple[Any, Any]]:
    """Return the first different element of two lists, such as `vector[17]`; of other values, the values."""
    if isinstance(one, list) and isinstance(other, list):
        for index, pair in enumerate(zip(one, other, strict=False)):
            if repr(pair[0]) != repr(pair[1]):
                return f"{name}[{index}]", pair
    return name, (one, other)


def _differs(place: Difference, what: str, *texts: str) -> Difference:
    """Return the difference with both values, shortened around the first different character."""
    pairs = enumerate(zip(*texts, strict=False))
    first = next((position for position, (one, other) in pairs if one != other), min(map(len, texts)))
    start = max(0, first - _SHOWN_CHARS // 3) if max(map(len, texts)) > _SHOWN_CHARS else 0
    end = start + _SHOWN_CHARS
    one, other = (
        f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}" for text in texts
    )
    return replace(place, what=what, expected=one, found=other)
