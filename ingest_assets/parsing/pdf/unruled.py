"""Tables without lines: texts side by side, row after row, where the detector saw more than plain text."""

import re
from collections.abc import Sequence

from ingest_assets.parsing.pdf.boxes import Box, around
from ingest_assets.parsing.pdf.content import PageContent
from ingest_assets.parsing.pdf.fonts import font_style
from ingest_assets.parsing.pdf.lines import Word, rows_of

MIN_ROWS = 3
MIN_SHARE = 0.55  # of the rows, that have several texts
MAX_ALONE = 3  # lines in a row with only one text: cells that go on, or labels over several rows
COLUMN_GAP = 1.2  # heights of the text between two texts of a row
MAX_STEP = 4.0  # heights of the text between the rows of one table
LONG = 0.3  # of the page's width: text this wide is running text
SAME_EDGE = 3.0  # points
MIN_ALIGNED = 0.6  # share of the rows with a text at a place where another row has one too
MAX_BESIDE_PROSE = 0.5  # share of the rows that are a short text beside a long one: labels in the margin
MAX_MONO, MAX_MATH, MAX_DOTTED = 0.4, 0.2, 0.08  # shares of the words
_LEADERS = re.compile(r"^[.·…\s]+$|\.{3}")


def unruled_table(box: Box, content: PageContent) -> Box | None:
    """The longest stretch of rows in a box that can be a table; None if there is none."""
    words = [word for word in content.words if word.turn == 0 and box.holds_middle_of(word.box)]
    if _is_something_else(words):
        return None
    rows = [_texts(row) for row in rows_of([word.box for word in words])]
    best: list[list[Box]] = []
    for stretch in _stretches(rows, LONG * content.width):
        if len(stretch) > len(best) and _is_table(stretch, LONG * content.width):
            best = stretch
    return around(text for row in best for text in row) if best else None


def _is_something_else(words: Sequence[Word]) -> bool:
    """A program, a formula, or an index with dots before its numbers."""
    styles = [font_style(word.font) for word in words]
    dotted = sum(bool(_LEADERS.search(word.text)) for word in words)
    return (
        sum(style.mono for style in styles) > MAX_MONO * len(words)
        or sum(style.math for style in styles) > MAX_MATH * len(words)
        or dotted > MAX_DOTTED * len(words)
    )


def _texts(row: Sequence[Box]) -> list[Box]:
    """Words that only spaces separate, as one."""
    found = [row[0]]
    for word in row[1:]:
        if word.left - found[-1].right > COLUMN_GAP * min(word.height, found[-1].height):
            found.append(word)
        else:
            found[-1] = around([found[-1], word])
    return found


def _stretches(rows: Sequence[list[Box]], long: float) -> list[list[list[Box]]]:
    """Rows that follow each other, each stretch from a row with several texts to another one."""
    found: list[list[list[Box]]] = [[]]
    alone: list[list[Box]] = []
    for row in rows:
        last = (alone or found[-1])[-1:]
        is_far = bool(last) and row[0].top - last[0][0].bottom > MAX_STEP * row[0].height
        if is_far or len(alone) > MAX_ALONE or (len(row) == 1 and row[0].width > 2 * long):
            found.append([])
            alone = []
        if _is_several(row, long):
            found[-1] += [*alone, row]
            alone = []
        elif found[-1]:
            alone.append(row)
    return found


def _is_several(row: Sequence[Box], long: float) -> bool:
    """Texts side by side, of which at most one is long: two would be columns of running text."""
    return len(row) > 1 and sum(text.width > long for text in row) <= 1


def _is_table(rows: Sequence[Sequence[Box]], long: float) -> bool:
    several = [row for row in rows if _is_several(row, long)]
    if len(several) < max(MIN_ROWS, MIN_SHARE * len(rows)):
        return False
    beside_prose = sum(len(row) == 2 and row[1].width > long for row in several)
    if beside_prose > MAX_BESIDE_PROSE * len(several):
        return False
    return sum(_is_aligned(row, several) for row in several) >= MIN_ALIGNED * len(several)


def _is_aligned(row: Sequence[Box], others: Sequence[Sequence[Box]]) -> bool:
    """A text after the first begins, ends or is centred where one of another row does."""
    return any(
        _same_place(text, other) for text in row[1:] for one in others if one is not row for other in one[1:]
    )


def _same_place(one: Box, other: Box) -> bool:
    offsets = (one.left - other.left, one.right - other.right, one.middle_x - other.middle_x)
    return min(map(abs, offsets)) <= SAME_EDGE
