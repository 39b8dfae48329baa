"""Texts of a table that span columns or rows, by missing or short lines, or by their position."""

from collections.abc import Sequence
from dataclasses import replace

from ingest_assets.parsing.pdf.cells import GridCell, cells_of
from ingest_assets.parsing.pdf.rules import Rule
from ingest_assets.parsing.pdf.table_rows import Band, Row, Text

SNAP = 3.0  # points between a line and a column split
CENTRED = 0.2  # of a column's width, between a text's centre and a column split
STRADDLES = 0.5  # of the text's height, between a text's centre and a line beside it


def expand_spans(row: Row, splits: Sequence[float], rules: Sequence[Rule], *, is_header: bool) -> Row:
    """Return the row's texts with all columns that they span.

    Where lines separate columns elsewhere but not beside a text, the text extends to the next line. A header
    text that is centred over two columns spans both.
    """
    expanded: Row = []
    for text in row:
        first, end = text.first, text.end
        taken = {column for one in row if one is not text for column in range(one.first, one.end)}
        while end <= len(splits) and end not in taken and _line_is_missing(splits[end - 1], text, rules):
            end += 1
        while first > 0 and first - 1 not in taken and _line_is_missing(splits[first - 1], text, rules):
            first -= 1
        if is_header and end == first + 1:
            first, end = _centred_span(text, splits, taken)
        expanded.append(replace(text, first=first, end=end))
    return expanded


def _line_is_missing(x: float, text: Text, rules: Sequence[Rule]) -> bool:
    """True if the table has a line at `x`, but not beside this text."""
    near = [rule for rule in rules if abs(rule.at - x) <= SNAP]
    return bool(near) and not any(rule.covers(text.box.top, text.box.bottom) > 0.5 for rule in near)


def _centred_span(text: Text, splits: Sequence[float], taken: set[int]) -> tuple[int, int]:
    for i, x in enumerate(splits):
        if i in taken or i + 1 in taken or text.first not in (i, i + 1):
            continue
        left = splits[i - 1] if i else None
        right = splits[i + 1] if i + 1 < len(splits) else None
        widths = [abs(x - edge) for edge in (left, right) if edge is not None]
        if widths and abs(text.box.middle_x - x) < CENTRED * min(widths):
            return i, i + 2
    return text.first, text.end


def split_band(
    band: Band, number: int, splits: Sequence[float], is_ruled: bool, size: float
) -> list[GridCell]:
    """Return the cells of a band with partial lines: rows at the lines, one tall row beside them."""
    heights = sorted({round(rule.at) for rule in band.partial})
    levels: list[Row] = [[] for _ in range(len(heights) + 1)]
    beside: dict[int, list[Text]] = {}
    edges = [float("-inf"), *splits, float("inf")]
    for row in band.rows:
        for text in row:
            if any(_runs_along(rule, text, edges) for rule in band.partial):
                levels[sum(text.box.middle_y > height for height in heights)].append(text)
            else:
                beside.setdefault(text.first, []).append(text)
    cells = []
    for texts in beside.values():
        places = {sum(text.box.middle_y > height for height in heights) for text in texts}
        straddles = any(
            abs(text.box.middle_y - height) < STRADDLES * size for text in texts for height in heights
        )
        if is_ruled or straddles or len(places) > 1:
            cells += cells_of(texts, number, number + len(levels))
        else:
            levels[places.pop()] += texts
    for i, level in enumerate(levels):
        wide = [
            _spanning_line(text, level, band.partial, edges, heights[i] if i < len(heights) else None)
            for text in level
        ]
        cells += cells_of(wide, number + i)
    return cells


def _runs_along(rule: Rule, text: Text, edges: Sequence[float]) -> bool:
    return any(_covers_column(rule, column, edges) for column in range(text.first, text.end))


def _covers_column(rule: Rule, column: int, edges: Sequence[float]) -> bool:
    """True if a line runs along a column; an outer column ends where the line does."""
    left, right = max(edges[column], rule.start - 1e3), min(edges[column + 1], rule.end + 1e3)
    left = rule.start if edges[column] == float("-inf") else left
    right = rule.end if edges[column + 1] == float("inf") else right
    return right > left and rule.covers(left, right) > 0.5


def _spanning_line(
    text: Text, level: Row, partial: Sequence[Rule], edges: Sequence[float], height: int | None
) -> Text:
    """Extend a text above a line over all columns of that line, if no other text is there."""
    for rule in partial:
        if height is None or round(rule.at) != height or not _runs_along(rule, text, edges):
            continue
        columns = [column for column in range(len(edges) - 1) if _covers_column(rule, column, edges)]
        first, end = min([*columns, text.first]), max([*columns, text.end - 1]) + 1
        if not any(one is not text and one.first < end and first < one.end for one in level):
            return replace(text, first=first, end=end)
    return text
