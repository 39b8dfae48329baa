"""Excel sample: the hive inspections of 2024 and the honey yield by year, one sheet each."""

import csv
from datetime import date
from pathlib import Path

from openpyxl import Workbook
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.worksheet import Worksheet

from ingest_tests.sample_builders.archive import freeze
from ingest_tests.sample_builders.markup import AUTHOR, BUILT_AT, PROSE

SHEETS = {"Inspections 2024": "hive-inspections-2024.csv", "Honey yield": "honey-yield.csv"}
MAX_COLUMN_WIDTH = 48


def build_all(folder: Path) -> list[Path]:
    """The workbook, written into the folder."""
    return [build_xlsx(folder / "hive-records-2024.xlsx")]


def build_xlsx(path: Path) -> Path:
    """One workbook with a sheet per CSV; plain values, since openpyxl stores no formula results."""
    workbook = Workbook()
    workbook.remove(workbook.active)
    for title, source in SHEETS.items():
        fill_sheet(workbook.create_sheet(title), source)
    workbook.properties.creator = AUTHOR
    workbook.properties.created = BUILT_AT.replace(tzinfo=None)
    workbook.save(path)
    return freeze(path)


def fill_sheet(sheet: Worksheet, source: str) -> None:
    """Copy a CSV into the sheet with typed cells, a bold frozen header and readable widths."""
    with (PROSE / source).open(encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    for row in rows:
        sheet.append([typed(cell) for cell in row])
    for cell in sheet[1]:
        cell.font = Font(bold=True)
    sheet.freeze_panes = "A2"
    for index, column in enumerate(zip(*rows, strict=True), start=1):
        width = min(max(map(len, column)) + 2, MAX_COLUMN_WIDTH)
        sheet.column_dimensions[get_column_letter(index)].width = width


def typed(cell: str) -> str | float | int | date | None:
    """The cell as a number or a date where it reads as one; an empty cell stays empty."""
    if not cell:
        return None
    for parse in (int, float, date.fromisoformat):
        try:
            return parse(cell)
        except ValueError:
            continue
    return cell
