"""Texts of a table over several columns or rows: by lines that are missing or short, or by their place."""

from collections.abc import Sequence
from dataclasses import replace

from ingest_assets.parsing.pdf.cells import GridCell, cells_of
from ingest_assets.parsing.pdf.rules import Rule
from ingest_assets.parsing.pdf.table_rows import Band, Row, Text

SNAP = 3.0  # points between a line and where columns meet
CENTRED = 0.2  # of a column's width, between a text's middle and where two columns meet
STRADDLES = 0.5  # of the text's height, between a text's middle and a line beside it


def stretched(row: Row, between: Sequence[float], down: Sequence[Rule], *, is_header: bool) -> Row:
    """The row's texts over all the columns that they stand over.

    Where lines separate columns elsewhere but not beside a text, it reaches to the next line; in a heading,
    a text that is set in the middle of two columns stands over both.
    """
    found: Row = []
    for text in row:
        first, end = text.first, text.end
        taken = {column for one in row if one is not text for column in range(one.first, one.end)}
        while end <= len(between) and end not in taken and _is_open(between[end - 1], text, down):
            end += 1
        while first > 0 and first - 1 not in taken and _is_open(between[first - 1], text, down):
            first -= 1
        if is_header and end == first + 1:
            first, end = _centred(text, between, taken)
        found.append(replace(text, first=first, end=end))
    return found


def _is_open(x: float, text: Text, down: Sequence[Rule]) -> bool:
    """There is a line at this place of the table, but not beside this text."""
    here = [rule for rule in down if abs(rule.at - x) <= SNAP]
    return bool(here) and not any(rule.covers(text.box.top, text.box.bottom) > 0.5 for rule in here)


def _centred(text: Text, between: Sequence[float], taken: set[int]) -> tuple[int, int]:
    for at, x in enumerate(between):
        if at in taken or at + 1 in taken or text.first not in (at, at + 1):
            continue
        left = between[at - 1] if at else None
        right = between[at + 1] if at + 1 < len(between) else None
        widths = [abs(x - edge) for edge in (left, right) if edge is not None]
        if widths and abs(text.box.middle_x - x) < CENTRED * min(widths):
            return at, at + 2
    return text.first, text.end


def divided(band: Band, number: int, between: Sequence[float], is_ruled: bool, size: float) -> list[GridCell]:
    """The cells of a band with shorter lines in it: rows where the lines are, one tall row beside them."""
    heights = sorted({round(rule.at) for rule in band.partial})
    levels: list[Row] = [[] for _ in range(len(heights) + 1)]
    beside: dict[int, list[Text]] = {}
    edges = [float("-inf"), *between, float("inf")]
    for row in band.rows:
        for text in row:
            if any(_is_over(rule, text, edges) for rule in band.partial):
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
    for at, level in enumerate(levels):
        wide = [
            _widened(text, level, band.partial, edges, heights[at] if at < len(heights) else None)
            for text in level
        ]
        cells += cells_of(wide, number + at)
    return cells


def _is_over(rule: Rule, text: Text, edges: Sequence[float]) -> bool:
    return any(_goes_along(rule, column, edges) for column in range(text.first, text.end))


def _goes_along(rule: Rule, column: int, edges: Sequence[float]) -> bool:
    """Whether a line goes along a column; at the sides of a table a column ends where the line does."""
    left, right = max(edges[column], rule.start - 1e3), min(edges[column + 1], rule.end + 1e3)
    left = rule.start if edges[column] == float("-inf") else left
    right = rule.end if edges[column + 1] == float("inf") else right
    return right > left and rule.covers(left, right) > 0.5


def _widened(
    text: Text, level: Row, partial: Sequence[Rule], edges: Sequence[float], height: int | None
) -> Text:
    """A text over a line that goes along several columns stands over them all, if nothing else does."""
    for rule in partial:
        if height is None or round(rule.at) != height or not _is_over(rule, text, edges):
            continue
        columns = [column for column in range(len(edges) - 1) if _goes_along(rule, column, edges)]
        first, end = min([*columns, text.first]), max([*columns, text.end - 1]) + 1
        if not any(one is not text and one.first < end and first < one.end for one in level):
            return replace(text, first=first, end=end)
    return text
