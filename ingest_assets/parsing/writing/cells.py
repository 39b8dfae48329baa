"""A table's rows as DocTags has them: for each place what it is, and the text where a cell begins."""

from collections.abc import Callable, Iterator

from docling_core.types.doc import TableCell, TableItem
from docling_core.types.doc.tokens import TableToken

TextOf = Callable[[TableCell], str]


def table_rows(table: TableItem, text_of: TextOf) -> str:
    """All rows, each with its end; nothing for a table without cells."""
    if not table.data.table_cells:
        return ""
    return "".join(
        "".join(_row(at, row, text_of)) + TableToken.OTSL_NL.value for at, row in enumerate(table.data.grid)
    )


def _row(at: int, row: list[TableCell], text_of: TextOf) -> Iterator[str]:
    for column, cell in enumerate(row):
        if cell.start_row_offset_idx != at or cell.start_col_offset_idx != column:
            yield from _continued(cell, at, column)
        elif text := text_of(cell).strip():
            yield _kind(cell).value + text
        else:
            yield TableToken.OTSL_ECEL.value


def _kind(cell: TableCell) -> TableToken:
    if cell.column_header:
        return TableToken.OTSL_CHED
    if cell.row_header:
        return TableToken.OTSL_RHED
    return TableToken.OTSL_SROW if cell.row_section else TableToken.OTSL_FCEL


def _continued(cell: TableCell, row: int, column: int) -> Iterator[str]:
    """A place that a cell to the left or above reaches over."""
    is_below, is_right = cell.start_row_offset_idx != row, cell.start_col_offset_idx != column
    if is_below and cell.col_span == 1:
        yield TableToken.OTSL_UCEL.value
    if is_right and cell.row_span == 1:
        yield TableToken.OTSL_LCEL.value
    if (is_below and cell.col_span != 1) or (is_right and cell.row_span != 1):
        yield TableToken.OTSL_XCEL.value
