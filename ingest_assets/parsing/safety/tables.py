"""Tables with more cells than one table can have: said as such, and before anybody fills them in."""

import csv
from io import StringIO

from ingest_assets.parsing.errors import DocumentTooLarge

MAX_TABLE_CELLS = 1_000_000  # Docling's own limit
_DELIMITERS = ",;\t|:"


def refuse_large_table(what: str, cells: int) -> None:
    """Raise when a table has more cells than Docling takes."""
    if cells > MAX_TABLE_CELLS:
        raise DocumentTooLarge(
            f"{what} has {cells} cells, more than the {MAX_TABLE_CELLS} that one table may have; split it."
        )


def check_csv(text: str) -> None:
    """Count the cells with each delimiter that there may be; the fewest count."""
    head = text[: text.find("\n") + 1 or len(text)]
    delimiters = [each for each in _DELIMITERS if each in head] or [_DELIMITERS[0]]
    refuse_large_table("The table", min(_cells(text, each) for each in delimiters))


def _cells(text: str, delimiter: str) -> int:
    """Rows times the longest row; 0 for what is no such table, which its reader will say better."""
    rows = columns = 0
    try:
        for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter):
            rows, columns = rows + 1, max(columns, len(row))
    except csv.Error:
        return 0
    return rows * columns
