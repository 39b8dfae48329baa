"""Spreadsheets with a value far out: reading them goes through every cell up to there."""

import re

from ingest_assets.model.options import ParsingOptions
from ingest_assets.parsing.safety.bombs import refuse_bomb
from ingest_assets.parsing.safety.tables import refuse_large_table

CELL_BYTES = 128  # what an empty cell costs
_CELL = re.compile(rb"<(?:\w+:)?c\b[^<>]*?\br=\"([A-Za-z]{1,3})(\d{1,7})\"")


def check_sheet(content: bytes, options: ParsingOptions) -> None:
    """Refuse a sheet whose cells span more than can be gone through, however few they are."""
    left = top = 1 << 30
    right = bottom = count = 0
    for found in _CELL.finditer(content):
        column, row = _column(found[1]), int(found[2])
        left, right = min(left, column), max(right, column)
        top, bottom = min(top, row), max(bottom, row)
        count += 1
    cells = max(0, right - left + 1) * max(0, bottom - top + 1)
    refuse_bomb("A sheet of the workbook", cells * CELL_BYTES, cells * CELL_BYTES, options)
    refuse_large_table("A sheet of the workbook", count)


def _column(name: bytes) -> int:
    number = 0
    for letter in name.upper():
        number = number * 26 + letter - 64
    return number
