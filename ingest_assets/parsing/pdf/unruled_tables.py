"""Tables without lines: rows of texts side by side, in a region labelled table or figure."""

import re
from collections.abc import Sequence

from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.content import PageContent
from ingest_assets.parsing.pdf.fonts import font_style
from ingest_assets.parsing.pdf.lines import Word, box_rows

MIN_ROWS = 3
MIN_SHARE = 0.55  # of the rows that must have several texts
MAX_ALONE = 3  # consecutive rows with a single text: wrapped cells, or labels of several rows
COLUMN_GAP = 1.2  # heights of the text between two texts of a row
MAX_STEP = 4.0  # heights of the text between the rows of one table
LONG = 0.3  # of the page's width: wider text is running text
SAME_EDGE = 3.0  # points
MIN_ALIGNED = 0.6  # share of the rows with a text that is aligned with one in another row
MAX_BESIDE_PROSE = 0.5  # share of the rows with a short text beside a long one: labels in the margin
MAX_MONO, MAX_MATH, MAX_DOTTED = 0.4, 0.2, 0.08  # shares of the words
_LEADERS = re.compile(r"^[.·…\s]+$|\.{3}")


def find_unruled_table(box: Box, content: PageContent) -> Box | None:
    """Return the box of the longest sequence of rows in `box` that can be a table, or None."""
    words = [word for word in content.words if word.turn == 0 and box.contains_middle_of(word.box)]
    if _is_other_content(words):
        return None
    rows = [_texts(row) for row in box_rows([word.box for word in words])]
    best: list[list[Box]] = []
    for stretch in _stretches(rows, LONG * content.width):
        if len(stretch) > len(best) and _is_table(stretch, LONG * content.width):
            best = stretch
    return bounding_box(text for row in best for text in row) if best else None


def _is_other_content(words: Sequence[Word]) -> bool:
    """True for a program, a formula, or an index with dots before its numbers."""
    styles = [font_style(word.font) for word in words]
    dotted = sum(bool(_LEADERS.search(word.text)) for word in words)
    return (
        sum(style.mono for style in styles) > MAX_MONO * len(words)
        or sum(style.math for style in styles) > MAX_MATH * len(words)
        or dotted > MAX_DOTTED * len(words)
    )


def _texts(row: Sequence[Box]) -> list[Box]:
    """Join words that are separated only by spaces."""
    texts = [row[0]]
    for word in row[1:]:
        if word.left - texts[-1].right > COLUMN_GAP * min(word.height, texts[-1].height):
            texts.append(word)
        else:
            texts[-1] = bounding_box([texts[-1], word])
    return texts


def _stretches(rows: Sequence[list[Box]], long: float) -> list[list[list[Box]]]:
    """Return sequences of consecutive rows, each from a row with several texts to another one."""
    stretches: list[list[list[Box]]] = [[]]
    single: list[list[Box]] = []
    for row in rows:
        previous = (single or stretches[-1])[-1:]
        is_far = bool(previous) and row[0].top - previous[0][0].bottom > MAX_STEP * row[0].height
        if is_far or len(single) > MAX_ALONE or (len(row) == 1 and row[0].width > 2 * long):
            stretches.append([])
            single = []
        if _has_several_texts(row, long):
            stretches[-1] += [*single, row]
            single = []
        elif stretches[-1]:
            single.append(row)
    return stretches


def _has_several_texts(row: Sequence[Box], long: float) -> bool:
    """True for texts side by side, at most one of them long: two would be columns of running text."""
    return len(row) > 1 and sum(text.width > long for text in row) <= 1


def _is_table(rows: Sequence[Sequence[Box]], long: float) -> bool:
    several = [row for row in rows if _has_several_texts(row, long)]
    if len(several) < max(MIN_ROWS, MIN_SHARE * len(rows)):
        return False
    beside_prose = sum(len(row) == 2 and row[1].width > long for row in several)
    if beside_prose > MAX_BESIDE_PROSE * len(several):
        return False
    return sum(_is_aligned(row, several) for row in several) >= MIN_ALIGNED * len(several)


def _is_aligned(row: Sequence[Box], others: Sequence[Sequence[Box]]) -> bool:
    """True if a text after the first starts, ends or is centred where one of another row does."""
    return any(
        _aligned(text, other) for text in row[1:] for one in others if one is not row for other in one[1:]
    )


def _aligned(one: Box, other: Box) -> bool:
    offsets = (one.left - other.left, one.right - other.right, one.middle_x - other.middle_x)
    return min(map(abs, offsets)) <= SAME_EDGE
