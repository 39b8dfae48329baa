"""The cells of a table, merged where they would overlap."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.table_rows import Row, Text


@dataclass(frozen=True, slots=True)
class GridCell:
    """Text that spans rows and columns; `end_row` and `end_column` are exclusive."""

    row: int
    end_row: int
    column: int
    end_column: int
    box: Box
    text: str
    is_header: bool = False


def cells_of(row: Row, number: int, end: int | None = None) -> list[GridCell]:
    """Return the row's texts as cells; texts that share a column share a cell."""
    groups: list[list[Text]] = []
    for text in sorted(row, key=lambda text: (text.first, text.end)):
        if groups and text.first < max(one.end for one in groups[-1]):
            groups[-1].append(text)
        else:
            groups.append([text])
    return [_cell(group, number, number + 1 if end is None else end) for group in groups]


def _cell(texts: Sequence[Text], row: int, end_row: int) -> GridCell:
    ordered = sorted(texts, key=lambda text: (text.line, text.box.left))
    return GridCell(
        row=row,
        end_row=end_row,
        column=min(text.first for text in texts),
        end_column=max(text.end for text in texts),
        box=bounding_box(text.box for text in texts),
        text=" ".join(text.text.strip() for text in ordered),
    )


def merge_overlapping_cells(cells: Sequence[GridCell]) -> list[GridCell]:
    """Return the cells in order, with overlapping cells merged."""
    merged: list[GridCell] = []
    for cell in sorted(cells, key=lambda cell: (cell.row, cell.column)):
        while other := next((one for one in merged if _overlap(one, cell)), None):
            merged.remove(other)
            cell = GridCell(
                row=min(other.row, cell.row),
                end_row=max(other.end_row, cell.end_row),
                column=min(other.column, cell.column),
                end_column=max(other.end_column, cell.end_column),
                box=bounding_box([other.box, cell.box]),
                text=f"{other.text} {cell.text}",
            )
        merged.append(cell)
    return merged


def _overlap(one: GridCell, other: GridCell) -> bool:
    is_level = one.row < other.end_row and other.row < one.end_row
    return is_level and one.column < other.end_column and other.column < one.end_column
