"""OpenDocument, where one cell or one space may stand for a million others."""

import re
from dataclasses import dataclass

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.safety.bombs import refuse_bomb
from ingest_assets.parsing.safety.sheets import CELL_BYTES
from ingest_assets.parsing.safety.tables import refuse_large_table

_ODF_PART = re.compile(
    rb"<(?:\w+:)?(?:(table)(?=[\s>])|(table-row)\b([^<>]*)|(?:covered-)?table-cell\b([^<>]*?)(/?))>|"
    rb"</(?:\w+:)?table-row>"
)
_ROWS = re.compile(rb"\bnumber-rows-repeated=[\"'](\d{1,9})")
_SPACES = re.compile(rb"<(?:\w+:)?s\s[^<>]*?\bc=[\"'](\d{1,12})")
_COLUMNS = re.compile(rb"\bnumber-columns-repeated=[\"'](\d{1,9})")


@dataclass(slots=True)
class _Grid:
    """How far a sheet's last cell with content is out."""

    rows: int = 0
    columns: int = 0
    _passed_rows: int = 0
    _row_repeats: int = 1
    _passed_columns: int = 0
    _row_columns: int = 0

    def begin_row(self, repeats: int) -> None:
        self._row_repeats, self._passed_columns, self._row_columns = repeats, 0, 0

    def add_cells(self, repeats: int, is_empty: bool) -> None:
        self._passed_columns += repeats
        if not is_empty:
            self._row_columns = self._passed_columns

    def end_row(self) -> None:
        self._passed_rows += self._row_repeats
        if self._row_columns:
            self.rows, self.columns = self._passed_rows, max(self.columns, self._row_columns)


def check_repeats(content: bytes, options: ParsingOptions) -> None:
    """Refuse tables that go too far out, and gaps that are too wide."""
    spaces = sum(int(count) for count in _SPACES.findall(content))
    refuse_bomb("The text", len(content), spaces, options)
    _check_tables(content, options)


def _check_tables(content: bytes, options: ParsingOptions) -> None:
    """Empty cells and rows at the ends do not count: nobody keeps them."""
    grid = _Grid()
    for part in _ODF_PART.finditer(content):
        if part[1]:
            _refuse_cells(grid, options)
            grid = _Grid()
        elif part[2]:
            grid.begin_row(_repeated(_ROWS, part[3]))
        elif part[4] is not None:
            grid.add_cells(_repeated(_COLUMNS, part[4]), is_empty=bool(part[5]) and b"value" not in part[4])
        else:
            grid.end_row()
    _refuse_cells(grid, options)


def _refuse_cells(grid: _Grid, options: ParsingOptions) -> None:
    cells = grid.rows * grid.columns
    refuse_bomb("A table of the document", cells * CELL_BYTES, cells * CELL_BYTES, options)
    refuse_large_table("A table of the document", cells)


def _repeated(pattern: re.Pattern[bytes], attributes: bytes) -> int:
    found = pattern.search(attributes)
    return int(found[1]) if found else 1
