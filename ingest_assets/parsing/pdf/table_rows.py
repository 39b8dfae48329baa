"""Which lines of text are one row of a table: by lines drawn, by their distances, by what they fill."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.rivers import is_figure
from ingest_assets.parsing.pdf.rules import Rule

MIN_ACROSS = 0.85  # share of a table's width, for a line to go across it
ALIGNED = 0.35  # of the text's height, between lines of text in different columns
MIN_VARIATION = 1.3  # a wide distance between lines of text over the narrowest
MIN_WIDE = 0.15  # share of the distances that are wide, for distances to mean something
TIGHT = 1.15  # times the narrowest distance
HEADING = 1.6  # of the text's height, between the lines of one heading
MANY_ROWS = 3
MAX_STEP = 1.9  # heights of the text between the lines of one cell
FULL = 2.5  # heights of the text that a wrapped line may fall short of its column's end


@dataclass(frozen=True, slots=True)
class Text:
    """A phrase and the columns it stands in; the end is not included."""

    box: Box
    text: str
    first: int
    end: int
    line: int = 0  # which line of text it is in, counted from the top


TextRow = Sequence[Text]  # texts at one height, from left to right
Row = list[Text]  # a row of the table: texts of one or more such heights


@dataclass(frozen=True, slots=True)
class Band:
    """What stands between two lines across a table, and the shorter lines in it."""

    top: float
    bottom: float
    rows: tuple[TextRow, ...]
    partial: tuple[Rule, ...] = ()


def bands_of(rows: Sequence[TextRow], across: Sequence[Rule], box: Box) -> list[Band]:
    """The lines of text between each two lines across the table, from top to bottom."""
    full = [rule for rule in across if rule.covers(box.left, box.right) >= MIN_ACROSS]
    partial = [rule for rule in across if rule not in full]
    edges = [box.top - 1, *(rule.at for rule in full), box.bottom + 1]
    found: list[Band] = []
    for top, bottom in pairwise(sorted(edges)):
        own = tuple(row for row in rows if top <= middle_of(row) < bottom)
        inner = _inside(partial, top, bottom)
        if own:
            found += _cut(Band(top, bottom, own, inner))
    return found


def _cut(band: Band) -> list[Band]:
    """A shorter line with many rows above or below it goes across the table, but for a cell or two."""
    for rule in band.partial:
        above = tuple(row for row in band.rows if middle_of(row) < rule.at)
        below = tuple(row for row in band.rows if middle_of(row) >= rule.at)
        if above and below and max(map(_full_rows, (above, below))) >= MANY_ROWS:
            parts = ((band.top, rule.at, above), (rule.at, band.bottom, below))
            return [
                part
                for top, bottom, rows in parts
                for part in _cut(Band(top, bottom, rows, _inside(band.partial, top, bottom)))
            ]
    return [band]


def _inside(rules: Sequence[Rule], top: float, bottom: float) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if top + 1 < rule.at < bottom - 1)


def _full_rows(rows: Sequence[TextRow]) -> int:
    """How many lines fill as many columns as the fullest, up to one."""
    most = max(len(columns_of(row)) for row in rows)
    return sum(len(columns_of(row)) >= max(2, most - 1) for row in rows)


def middle_of(row: TextRow) -> float:
    """The height at which a line of text stands."""
    return sum(text.box.middle_y for text in row) / len(row)


def _distance(above: TextRow, below: TextRow) -> float:
    """How far one line of text stands below another, by the feet of their letters."""
    return median(text.box.bottom for text in below) - median(text.box.bottom for text in above)


def columns_of(row: TextRow) -> set[int]:
    """The columns that a line of text fills."""
    return {column for text in row for column in range(text.first, text.end)}


def joined_rows(band: Band, ends: Sequence[float], size: float, *, is_header: bool = False) -> list[Row]:
    """The rows of a band that no shorter line divides."""
    if is_misaligned(band.rows, size):
        return [[text for row in band.rows for text in row]]
    distances = [_distance(above, below) for above, below in pairwise(band.rows)]
    tight = TIGHT * min(distances, default=0.0) if _vary(distances) else HEADING * size if is_header else None
    found: list[Row] = []
    for at, row in enumerate(band.rows):
        above = band.rows[at - 1] if at else None
        if above is not None and _continues(found[-1], above, row, tight, ends, size):
            found[-1].extend(row)
        else:
            found.append(list(row))
    return found


def _vary(distances: Sequence[float]) -> bool:
    """Whether the distances are of two kinds, so that they tell rows from wrapped lines."""
    wide = sum(distance > MIN_VARIATION * min(distances) for distance in distances)
    return len(distances) > 2 and wide >= MIN_WIDE * len(distances)


def is_misaligned(rows: Sequence[TextRow], size: float) -> bool:
    """A text stands between the lines of its neighbours: in the middle of a row of several lines."""
    texts = [text for row in rows for text in row]
    columns = sorted({text.first for text in texts})
    heights = {column: [t.box.middle_y for t in texts if t.first == column] for column in columns}
    most = max(heights.values(), key=len)
    if len(most) < 2:
        return False
    if any(_has_gaps(sorted(found), size) for found in heights.values()):
        return False  # several rows, some of whose cells have several lines
    alone = [found[0] for found in heights.values() if len(found) == 1]
    inside = [y for y in alone if most[0] < y < most[-1]]
    return any(min(abs(y - other) for other in most) > ALIGNED * size for y in inside)


def _has_gaps(heights: Sequence[float], size: float) -> bool:
    return any(below - above > MAX_STEP * size for above, below in pairwise(heights))


def _continues(
    row: Row, above: TextRow, line: TextRow, tight: float | None, ends: Sequence[float], size: float
) -> bool:
    """Whether a line of text goes on with the row above it."""
    if any(is_figure(text.text) and is_figure(one.text) for text in line for one in _over(text, above)):
        return False  # figures do not go on in the next line
    if tight is not None and columns_of(row) < columns_of(line):
        return _distance(above, line) <= tight  # the middle of a tall row
    if not columns_of(line) <= columns_of(row):
        return False
    if columns_of(line) == columns_of(row) or 0 in columns_of(line):
        is_tight = tight is None or _distance(above, line) <= tight
        return is_tight and all(_is_broken(text, above) for text in line)
    if tight is not None:
        return _distance(above, line) <= tight
    return all(_wraps(text, above, ends, size) for text in line)


def _over(text: Text, above: TextRow) -> list[Text]:
    return [one for one in above if one.first <= text.first < one.end]


def _is_broken(text: Text, above: TextRow) -> bool:
    """The text starts in the middle of a word or a sentence that the line above it began."""
    over = _over(text, above)
    if not over:
        return False
    return over[-1].text.endswith("-") or (text.text[:1].islower() and over[-1].text[:1].isupper())


def _wraps(text: Text, above: TextRow, ends: Sequence[float], size: float) -> bool:
    """The line above it, in the same column, was full, or the text starts in the middle of a sentence."""
    over = _over(text, above)
    if not over:
        return False
    last = over[-1].text
    is_full = over[-1].box.right >= ends[text.first] - FULL * size
    is_prose = len(over) > 1 or " " in last
    goes_on = text.text[:1].islower() and (is_prose or last[:1].isupper())
    return last.endswith("-") or goes_on or (is_prose and is_full)
