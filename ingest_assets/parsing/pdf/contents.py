"""Tables of contents: entries on the left, page numbers at the right edge, with or without dots between."""

import re
from collections.abc import Sequence

from ingest_assets.parsing.pdf.boxes import bounding_box
from ingest_assets.parsing.pdf.grids import Grid, GridCell
from ingest_assets.parsing.pdf.lines import Line, is_beside
from ingest_assets.parsing.pdf.rows import rows_of

MIN_ENTRIES = 4
SAME_EDGE = 3.0  # points between the right edges of page numbers
MAX_STEP = 4.0  # heights of the text between two entries

_Rows = dict[int, list[Line]]  # for each line (by id) the lines in its row

_NUMBER = re.compile(r"\d{1,4}|[ivxlc]{1,7}|[A-Z]?-?\d{1,3}[-–.]\d{1,3}")
_DOTTED = re.compile(r"(?P<entry>.*?)\s*(?:[.·…]\s?){3,}\s*(?P<page>\S{1,7})?\s*$")


def find_contents(lines: Sequence[Line]) -> list[list[Line]]:
    """Return the lines of each table of contents on a page."""
    rows = {id(line): row for row in rows_of(lines) for line in row}
    pages = [line for line in lines if _ends_in_a_page(line, rows[id(line)])]
    tocs: list[list[Line]] = []
    for edge in sorted({round(line.box.right) for line in pages}):
        column = sorted(
            (line for line in pages if abs(line.box.right - edge) <= SAME_EDGE), key=lambda line: line.box.top
        )
        if len(column) >= MIN_ENTRIES and not any(line in toc for toc in tocs for line in column):
            tocs += [toc for toc in _runs(column, lines, rows) if toc]
    return tocs


def _ends_in_a_page(line: Line, row: Sequence[Line]) -> bool:
    dotted = _DOTTED.match(line.text)
    if dotted:
        return bool(dotted["page"] and _NUMBER.fullmatch(dotted["page"]))
    return bool(_NUMBER.fullmatch(line.text.strip())) and _entry_beside(line, row) is not None


def _entry_beside(number: Line, row: Sequence[Line]) -> Line | None:
    """Return the text left of a page number, if there is nothing between them."""
    beside = [line for line in row if line is not number and line.box.right <= number.box.left]
    nearest = max(beside, key=lambda line: line.box.right, default=None)
    if nearest is None or not any(letter.isalpha() for letter in nearest.text):
        return None
    return nearest


def _runs(column: Sequence[Line], lines: Sequence[Line], rows: _Rows) -> list[list[Line]]:
    """Return consecutive entries, with all lines between their left and right edges."""
    groups: list[list[Line]] = []
    for line in column:
        if groups and line.box.top - groups[-1][-1].box.bottom <= MAX_STEP * line.size:
            groups[-1].append(line)
        else:
            groups.append([line])
    return [_with_entries(group, lines, rows) for group in groups if len(group) >= MIN_ENTRIES]


def _with_entries(group: Sequence[Line], lines: Sequence[Line], rows: _Rows) -> list[Line]:
    beside = [entry for line in group if (entry := _entry_beside(line, rows[id(line)])) is not None]
    area = bounding_box(line.box for line in (*group, *beside))
    inside = [line for line in lines if line.box.share_in(area) > 0.5]
    return sorted(inside, key=lambda line: (line.box.middle_y, line.box.left))


def contents_grid(lines: Sequence[Line]) -> Grid:
    """Return two columns: entries and pages. A wrapped entry is one row."""
    rows: list[tuple[list[Line], str, list[Line]]] = []  # lines of the entry, page number, line of the number
    is_open = False
    for line in lines:
        entry, page = _parts(line)
        if not entry and rows and any(is_beside(line.box, one.box) for one in rows[-1][0]):
            rows[-1] = (rows[-1][0], page, [line])
            is_open = False
        elif (is_open and not page) or (is_open and rows and not rows[-1][1]):
            rows[-1] = ([*rows[-1][0], line], page, [line] if page else [])
            is_open = not page
        else:
            rows.append(([line], page, [line] if page and not entry else []))
            is_open = not page
    cells = []
    for number, (left, page, right) in enumerate(rows):
        text = " ".join(filter(None, (_parts(line)[0] for line in left)))
        box = bounding_box(line.box for line in left)
        cells.append(GridCell(number, number + 1, 0, 1, box, text))
        if page:
            cells.append(
                GridCell(number, number + 1, 1, 2, bounding_box(line.box for line in right or left), page)
            )
    return Grid(len(rows), 2, tuple(cells))


def _parts(line: Line) -> tuple[str, str]:
    dotted = _DOTTED.match(line.text)
    if dotted:
        return dotted["entry"].strip(), (dotted["page"] or "").strip()
    text = line.text.strip()
    return ("", text) if _NUMBER.fullmatch(text) else (text, "")
