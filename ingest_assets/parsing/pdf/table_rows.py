"""Joins lines of text to rows of a table, by drawn lines, by their distances and by the columns they fill."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.rivers import is_number
from ingest_assets.parsing.pdf.rules import Rule

MIN_ACROSS = 0.85  # share of a table's width that a line across it covers
ALIGNED = 0.35  # of the text's height: the maximum offset of one line's texts in different columns
MIN_VARIATION = 1.3  # ratio of a wide distance between lines of text to the narrowest
MIN_WIDE = 0.15  # share of the distances that must be wide, for distances to be significant
TIGHT = 1.15  # times the narrowest distance
HEADING = 1.6  # of the text's height: the maximum distance of the lines of one heading
MANY_ROWS = 3
MAX_STEP = 1.9  # heights of the text: the maximum distance of the lines of one cell
FULL = 2.5  # heights of the text: the maximum distance of a wrapped line from its column's end


@dataclass(frozen=True, slots=True)
class Text:
    """A phrase and its columns; `end` is exclusive."""

    box: Box
    text: str
    first: int
    end: int
    line: int = 0  # index of its line of text, from the top


TextRow = Sequence[Text]  # texts at one height, from left to right
Row = list[Text]  # a row of the table: texts of one or more lines of text


@dataclass(frozen=True, slots=True)
class Band:
    """The lines of text between two lines across a table, and the partial lines there."""

    top: float
    bottom: float
    rows: tuple[TextRow, ...]
    partial: tuple[Rule, ...] = ()


def bands_of(rows: Sequence[TextRow], across: Sequence[Rule], box: Box) -> list[Band]:
    """Return the lines of text between consecutive lines across the table, from top to bottom."""
    full = [rule for rule in across if rule.covers(box.left, box.right) >= MIN_ACROSS]
    partial = [rule for rule in across if rule not in full]
    edges = [box.top - 1, *(rule.at for rule in full), box.bottom + 1]
    bands: list[Band] = []
    for top, bottom in pairwise(sorted(edges)):
        inside = tuple(row for row in rows if top <= middle_of(row) < bottom)
        inner = _inside(partial, top, bottom)
        if inside:
            bands += _split_at_partial(Band(top, bottom, inside, inner))
    return bands


def _split_at_partial(band: Band) -> list[Band]:
    """Split at partial lines with many rows above or below: they cross the table except for a cell or two."""
    for rule in band.partial:
        above = tuple(row for row in band.rows if middle_of(row) < rule.at)
        below = tuple(row for row in band.rows if middle_of(row) >= rule.at)
        if above and below and max(map(_full_rows, (above, below))) >= MANY_ROWS:
            parts = ((band.top, rule.at, above), (rule.at, band.bottom, below))
            return [
                part
                for top, bottom, rows in parts
                for part in _split_at_partial(Band(top, bottom, rows, _inside(band.partial, top, bottom)))
            ]
    return [band]


def _inside(rules: Sequence[Rule], top: float, bottom: float) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if top + 1 < rule.at < bottom - 1)


def _full_rows(rows: Sequence[TextRow]) -> int:
    """Return how many lines fill as many columns as the fullest one, or one less."""
    most = max(len(columns_of(row)) for row in rows)
    return sum(len(columns_of(row)) >= max(2, most - 1) for row in rows)


def middle_of(row: TextRow) -> float:
    """Return the height of a line of text."""
    return sum(text.box.middle_y for text in row) / len(row)


def _distance(above: TextRow, below: TextRow) -> float:
    """Return the distance of two lines of text, between the lower edges of their boxes."""
    return median(text.box.bottom for text in below) - median(text.box.bottom for text in above)


def columns_of(row: TextRow) -> set[int]:
    """Return the columns that a line of text fills."""
    return {column for text in row for column in range(text.first, text.end)}


def joined_rows(band: Band, ends: Sequence[float], size: float, *, is_header: bool = False) -> list[Row]:
    """Return the rows of a band without partial lines."""
    if is_misaligned(band.rows, size):
        return [[text for row in band.rows for text in row]]
    distances = [_distance(above, below) for above, below in pairwise(band.rows)]
    tight = TIGHT * min(distances, default=0.0) if _vary(distances) else HEADING * size if is_header else None
    joined: list[Row] = []
    for i, row in enumerate(band.rows):
        above = band.rows[i - 1] if i else None
        if above is not None and _continues(joined[-1], above, row, tight, ends, size):
            joined[-1].extend(row)
        else:
            joined.append(list(row))
    return joined


def _vary(distances: Sequence[float]) -> bool:
    """True if the distances are of two kinds, which distinguish rows from wrapped lines."""
    wide = sum(distance > MIN_VARIATION * min(distances) for distance in distances)
    return len(distances) > 2 and wide >= MIN_WIDE * len(distances)


def is_misaligned(rows: Sequence[TextRow], size: float) -> bool:
    """True if a text is between the lines of its neighbours: in the middle of a row of several lines."""
    texts = [text for row in rows for text in row]
    columns = sorted({text.first for text in texts})
    heights = {column: [t.box.middle_y for t in texts if t.first == column] for column in columns}
    most = max(heights.values(), key=len)
    if len(most) < 2:
        return False
    if any(_has_wide_gaps(sorted(ys), size) for ys in heights.values()):
        return False  # several rows, some of whose cells have several lines
    single = [ys[0] for ys in heights.values() if len(ys) == 1]
    inside = [y for y in single if most[0] < y < most[-1]]
    return any(min(abs(y - other) for other in most) > ALIGNED * size for y in inside)


def _has_wide_gaps(heights: Sequence[float], size: float) -> bool:
    return any(below - above > MAX_STEP * size for above, below in pairwise(heights))


def _continues(
    row: Row, above: TextRow, line: TextRow, tight: float | None, ends: Sequence[float], size: float
) -> bool:
    """True if a line of text continues the row above it."""
    if any(is_number(text.text) and is_number(one.text) for text in line for one in _above(text, above)):
        return False  # numbers do not wrap
    if tight is not None and columns_of(row) < columns_of(line):
        return _distance(above, line) <= tight  # the middle of a tall row
    if not columns_of(line) <= columns_of(row):
        return False
    if columns_of(line) == columns_of(row) or 0 in columns_of(line):
        is_tight = tight is None or _distance(above, line) <= tight
        return is_tight and all(_is_continued(text, above) for text in line)
    if tight is not None:
        return _distance(above, line) <= tight
    return all(_wraps(text, above, ends, size) for text in line)


def _above(text: Text, above: TextRow) -> list[Text]:
    return [one for one in above if one.first <= text.first < one.end]


def _is_continued(text: Text, above: TextRow) -> bool:
    """True if the text continues a word or a sentence of the line above it."""
    texts = _above(text, above)
    if not texts:
        return False
    return texts[-1].text.endswith("-") or (text.text[:1].islower() and texts[-1].text[:1].isupper())


def _wraps(text: Text, above: TextRow, ends: Sequence[float], size: float) -> bool:
    """True if the line above it in the same column was full, or the text continues its sentence."""
    texts = _above(text, above)
    if not texts:
        return False
    last = texts[-1].text
    is_full = texts[-1].box.right >= ends[text.first] - FULL * size
    is_prose = len(texts) > 1 or " " in last
    goes_on = text.text[:1].islower() and (is_prose or last[:1].isupper())
    return last.endswith("-") or goes_on or (is_prose and is_full)
