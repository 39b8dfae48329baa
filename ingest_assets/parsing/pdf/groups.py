"""Texts of a table that stand between its lines: in the middle of a tall row, or of rows with one label."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from ingest_assets.parsing.pdf.table_rows import Band, Row, Text, TextRow, columns_of, joined_rows, middle_of

NEAR = 0.75  # of the usual distance of lines: a line this close to both its neighbours is between them
OFF = 0.3  # of that distance, between a label and the middle of its rows
PAIR = 2


@dataclass(frozen=True, slots=True)
class Label:
    """A text over several rows, the last of which is not included."""

    text: Text
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Grouped:
    """The rows of a band without the labels over several of them, and these labels."""

    rows: tuple[Row, ...]
    labels: tuple[Label, ...] = ()


def grouped(band: Band, ends: Sequence[float], size: float, *, is_header: bool, is_ruled: bool) -> Grouped:
    """The band's rows and labels."""
    whole = Grouped(tuple(joined_rows(band, ends, size, is_header=is_header)))
    step = _step(band.rows)
    between = [at for at in range(1, len(band.rows) - 1) if _is_between(band.rows, at, step)]
    if not between:
        return whole
    lines = tuple(row for at, row in enumerate(band.rows) if at not in between)
    rows = joined_rows(replace(band, rows=lines), ends, size, is_header=is_header)
    loose: list[Text] = []
    for text in (text for at in between for text in band.rows[at]):
        home = next((row for row in rows if _is_beside(text, row)), None)
        (loose if home is None else home).append(text)
    is_pair = len(rows) == PAIR and len({text.first for text in loose}) > 1
    if is_ruled and (is_pair or all(len(row) < PAIR for row in rows)):
        return whole  # one row, some of whose cells have several lines
    return _with_labels(rows, loose, step) if loose else Grouped(tuple(rows))


def _step(rows: Sequence[TextRow]) -> float:
    """How far lines stand apart that fill the same columns."""
    steps = [
        middle_of(below) - middle_of(above)
        for at, above in enumerate(rows)
        for below in rows[at + 1 : at + 3]
        if len(columns_of(above) & columns_of(below)) > len(columns_of(below)) / 2
    ]
    return median(steps) if steps else 0.0


def _is_between(rows: Sequence[TextRow], at: int, step: float) -> bool:
    above, own, below = (middle_of(row) for row in rows[at - 1 : at + 2])
    is_near = max(own - above, below - own) < NEAR * step
    filled = columns_of(rows[at])
    return is_near and not filled & columns_of(rows[at - 1]) and not filled & columns_of(rows[at + 1])


def _is_beside(text: Text, row: Row) -> bool:
    """The row has lines above and below the text."""
    middles = [one.box.middle_y for one in row]
    return min(middles) < text.box.middle_y < max(middles)


def _with_labels(rows: Sequence[Row], loose: Sequence[Text], step: float) -> Grouped:
    """Texts between two rows are labels of them, or of more rows if all labels of a column come out so."""
    labels: list[Label] = []
    heights = [_height(row) for row in rows]
    for column in sorted({text.first for text in loose}):
        own = [text for text in loose if text.first == column]
        inside = [text for row in rows for text in row if text.first <= column < text.end]
        labels += _shared_out([*own, *inside], heights, step) or [_over_two(text, heights) for text in own]
    aside = {id(label.text) for label in labels}
    return Grouped(tuple([text for text in row if id(text) not in aside] for row in rows), tuple(labels))


def _height(row: Row) -> float:
    middles = [text.box.middle_y for text in row]
    return (min(middles) + max(middles)) / 2


def _shared_out(labels: Sequence[Text], heights: Sequence[float], step: float) -> list[Label]:
    """Rows by the labels in the middle of them, one after the other; nothing if that does not come out."""
    found: list[Label] = []
    first = 0
    for text in sorted(labels, key=lambda text: text.box.middle_y):
        ends = range(first + 1, len(heights) + 1)
        best = min(ends, key=lambda end: abs(_middle(heights, first, end) - text.box.middle_y), default=None)
        if best is None or abs(_middle(heights, first, best) - text.box.middle_y) > OFF * step:
            return []
        found.append(Label(text, first, best))
        first = best
    return [label for label in found if label.end > label.first + 1] if first == len(heights) else []


def _middle(heights: Sequence[float], first: int, end: int) -> float:
    return (heights[first] + heights[end - 1]) / 2


def _over_two(text: Text, heights: Sequence[float]) -> Label:
    below = sum(height < text.box.middle_y for height in heights)
    return Label(text, max(0, below - 1), min(len(heights), below + 1))
