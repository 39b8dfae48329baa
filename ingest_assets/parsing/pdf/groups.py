"""Texts of a table between its lines of text: in a tall row, or labels of several rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from ingest_assets.parsing.pdf.table_rows import Band, Row, Text, TextRow, columns_of, joined_rows, middle_of

NEAR = 0.75  # of the usual distance of lines: a line this close to both neighbours is between them
OFF = 0.3  # of that distance: the maximum offset of a label from the middle of its rows
PAIR = 2


@dataclass(frozen=True, slots=True)
class Label:
    """A text that spans rows; `end` is exclusive."""

    text: Text
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """The rows of a band, and the labels that span several of them."""

    rows: tuple[Row, ...]
    labels: tuple[Label, ...] = ()


def group_rows(
    band: Band, ends: Sequence[float], size: float, *, is_header: bool, is_ruled: bool
) -> GroupedRows:
    """Return the band's rows and labels."""
    unlabelled = GroupedRows(tuple(joined_rows(band, ends, size, is_header=is_header)))
    step = _step(band.rows)
    between = [i for i in range(1, len(band.rows) - 1) if _is_between(band.rows, i, step)]
    if not between:
        return unlabelled
    lines = tuple(row for i, row in enumerate(band.rows) if i not in between)
    rows = joined_rows(replace(band, rows=lines), ends, size, is_header=is_header)
    loose: list[Text] = []
    for text in (text for i in between for text in band.rows[i]):
        enclosing = next((row for row in rows if _is_beside(text, row)), None)
        (loose if enclosing is None else enclosing).append(text)
    is_pair = len(rows) == PAIR and len({text.first for text in loose}) > 1
    if is_ruled and (is_pair or all(len(row) < PAIR for row in rows)):
        return unlabelled  # one row, some of whose cells have several lines
    return _with_labels(rows, loose, step) if loose else GroupedRows(tuple(rows))


def _step(rows: Sequence[TextRow]) -> float:
    """Return the usual distance of lines that fill the same columns."""
    steps = [
        middle_of(below) - middle_of(above)
        for i, above in enumerate(rows)
        for below in rows[i + 1 : i + 3]
        if len(columns_of(above) & columns_of(below)) > len(columns_of(below)) / 2
    ]
    return median(steps) if steps else 0.0


def _is_between(rows: Sequence[TextRow], i: int, step: float) -> bool:
    above, middle, below = (middle_of(row) for row in rows[i - 1 : i + 2])
    is_near = max(middle - above, below - middle) < NEAR * step
    filled = columns_of(rows[i])
    return is_near and not filled & columns_of(rows[i - 1]) and not filled & columns_of(rows[i + 1])


def _is_beside(text: Text, row: Row) -> bool:
    """True if the row has lines above and below the text."""
    middles = [one.box.middle_y for one in row]
    return min(middles) < text.box.middle_y < max(middles)


def _with_labels(rows: Sequence[Row], loose: Sequence[Text], step: float) -> GroupedRows:
    """Assign each text to two rows, or to more if that fits for all labels of a column."""
    labels: list[Label] = []
    heights = [_height(row) for row in rows]
    for column in sorted({text.first for text in loose}):
        texts = [text for text in loose if text.first == column]
        inside = [text for row in rows for text in row if text.first <= column < text.end]
        labels += _centred([*texts, *inside], heights, step) or [_over_two(text, heights) for text in texts]
    moved = {id(label.text) for label in labels}
    return GroupedRows(tuple([text for text in row if id(text) not in moved] for row in rows), tuple(labels))


def _height(row: Row) -> float:
    middles = [text.box.middle_y for text in row]
    return (min(middles) + max(middles)) / 2


def _centred(labels: Sequence[Text], heights: Sequence[float], step: float) -> list[Label]:
    """Divide all rows among labels that are centred on them; empty if that does not fit."""
    assigned: list[Label] = []
    first = 0
    for text in sorted(labels, key=lambda text: text.box.middle_y):
        ends = range(first + 1, len(heights) + 1)
        best = min(ends, key=lambda end: abs(_middle(heights, first, end) - text.box.middle_y), default=None)
        if best is None or abs(_middle(heights, first, best) - text.box.middle_y) > OFF * step:
            return []
        assigned.append(Label(text, first, best))
        first = best
    return [label for label in assigned if label.end > label.first + 1] if first == len(heights) else []


def _middle(heights: Sequence[float], first: int, end: int) -> float:
    return (heights[first] + heights[end - 1]) / 2


def _over_two(text: Text, heights: Sequence[float]) -> Label:
    below = sum(height < text.box.middle_y for height in heights)
    return Label(text, max(0, below - 1), min(len(heights), below + 1))
