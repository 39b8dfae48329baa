"""Tables indicated by drawn lines alone: framed cells, or rows between lines of equal length."""

from collections.abc import Sequence
from itertools import pairwise

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import PageContent
from ingest_assets.parsing.pdf.lines import box_rows
from ingest_assets.parsing.pdf.rules import Rule, horizontal_rules, vertical_rules

TOUCH = 3.0  # points between lines that meet
MIN_WORDS = 4
MIN_ROWS_IN_COLUMNS = 0.6  # share of the rows that must have several texts
MAX_PAGE_SHARE = 0.8
MIN_WIDTH = 40.0
MANY = 400  # lines: more than any table has
COLUMN_GAP = 1.5  # heights of the text between two texts of a row
MIN_GAP = 0.6  # the same, where there is other evidence of a table


def find_ruled_tables(content: PageContent) -> list[Box]:
    """Return the boxes of such tables."""
    across, down = horizontal_rules(content.rules), vertical_rules(content.rules)
    if len(across) > MANY or len(down) > MANY:
        return []  # a drawing
    page = content.width * content.height
    boxes = [*_framed(across, down), *_stacked(across)]
    return [box for box in boxes if box.area < MAX_PAGE_SHARE * page and _has_columns(box, content)]


def _framed(across: Sequence[Rule], down: Sequence[Rule]) -> list[Box]:
    """Return boxes of lines that meet and form at least two cells: a frame with a line through it."""
    groups: list[tuple[list[Rule], list[Rule]]] = []
    for rule in across:
        meeting = [line for line in down if _meet(rule, line)]
        touching = [group for group in groups if any(line in group[1] for line in meeting)]
        groups = [group for group in groups if not any(group is one for one in touching)]
        rows = [rule, *(row for group in touching for row in group[0])]
        columns = [*meeting, *(line for group in touching for line in group[1] if line not in meeting)]
        groups.append((rows, columns))
    return [
        Box(
            min(row.start for row in rows),
            min(row.at for row in rows),
            max(row.end for row in rows),
            max(row.at for row in rows),
        )
        for rows, columns in groups
        if len(rows) >= 2 and len(columns) >= 2 and len(rows) + len(columns) >= 5
    ]


def _meet(row: Rule, column: Rule) -> bool:
    along = row.start - TOUCH <= column.at <= row.end + TOUCH
    return along and column.start - TOUCH <= row.at <= column.end + TOUCH


def _stacked(across: Sequence[Rule]) -> list[Box]:
    """Return boxes of at least three lines of equal length, one below the other."""
    groups: list[list[Rule]] = []
    for rule in across:
        equal = next((group for group in groups if _is_as_long(group[0], rule)), None)
        if equal is None:
            groups.append([rule])
        else:
            equal.append(rule)
    return [
        Box(group[0].start, group[0].at, group[0].end, group[-1].at)
        for group in groups
        if len(group) >= 3 and group[0].length >= MIN_WIDTH
    ]


def _is_as_long(one: Rule, other: Rule) -> bool:
    return abs(one.start - other.start) <= TOUCH and abs(one.end - other.end) <= TOUCH


def has_rows_of_texts(box: Box, content: PageContent) -> bool:
    """True if a row in the box has several texts, or if it has no words, as on a scan."""
    words = [word.box for word in content.words if box.contains_middle_of(word.box)]
    return not words or any(_has_several_texts(row, MIN_GAP) for row in box_rows(words))


def _has_columns(box: Box, content: PageContent) -> bool:
    """True if most rows in the box have several texts, far enough apart."""
    words = [word.box for word in content.words if box.contains_middle_of(word.box) and word.turn == 0]
    if len(words) < MIN_WORDS or not box.height > 0:
        return False
    rows = box_rows(words)
    several = sum(_has_several_texts(row, COLUMN_GAP) for row in rows)
    return len(rows) >= 2 and several >= max(2.0, MIN_ROWS_IN_COLUMNS * len(rows))


def _has_several_texts(row: Sequence[Box], min_gap: float) -> bool:
    ordered = sorted(row, key=lambda word: word.left)
    gaps = ((after.left - before.right, before.height) for before, after in pairwise(ordered))
    return any(gap > min_gap * height for gap, height in gaps)
