"""A table's rows and columns from where its words stand. Pure geometry: no model, no ruling lines."""

from collections.abc import Sequence
from dataclasses import dataclass

MIN_ROW_OVERLAP = 0.5
MAX_WORD_GAP = 0.6  # of the text's height; a wider gap separates two cells
COLUMN_TOLERANCE = 0.5  # points that two columns may touch by and still be two


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of text and its box, from the top left."""

    left: float
    top: float
    right: float
    bottom: float
    text: str


@dataclass(frozen=True, slots=True)
class GridCell:
    """Text at a row, over the columns `first_column` up to, not including, `end_column`."""

    row: int
    first_column: int
    end_column: int
    content: Word


@dataclass(frozen=True, slots=True)
class Grid:
    """A table without row spans. Every word is in exactly one cell."""

    rows: int
    columns: int
    cells: tuple[GridCell, ...]


def grid_of(words: Sequence[Word]) -> Grid:
    """Rows are words at one height; columns are what the words that span no others stand in."""
    rows = [_phrases(row) for row in _rows([word for word in words if word.text.strip()])]
    bands = _columns(rows)
    cells = [cell for number, row in enumerate(rows) for cell in _cells(number, row, bands)]
    return Grid(rows=len(rows), columns=len(bands), cells=tuple(cells))


def _rows(words: list[Word]) -> list[list[Word]]:
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: ((word.top + word.bottom) / 2, word.left)):
        if rows and _same_row(rows[-1][0], word):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [sorted(row, key=lambda word: (word.left, word.right)) for row in rows]


def _same_row(first: Word, word: Word) -> bool:
    shared = min(first.bottom, word.bottom) - max(first.top, word.top)
    lower = min(first.bottom - first.top, word.bottom - word.top)
    return shared > MIN_ROW_OVERLAP * lower


def _phrases(row: list[Word]) -> list[Word]:
    """Neighbours that a space separates are one text."""
    phrases = row[:1]
    for word in row[1:]:
        last = phrases[-1]
        height = min(last.bottom - last.top, word.bottom - word.top)
        if word.left - last.right > MAX_WORD_GAP * height:
            phrases.append(word)
        else:
            phrases[-1] = _merged(last, word)
    return phrases


def _merged(one: Word, other: Word) -> Word:
    return Word(
        left=min(one.left, other.left),
        top=min(one.top, other.top),
        right=max(one.right, other.right),
        bottom=max(one.bottom, other.bottom),
        text=f"{one.text.strip()} {other.text.strip()}",
    )


def _columns(rows: list[list[Word]]) -> list[tuple[float, float]]:
    """Merged horizontal extents of all words but those that stand over several words of another row."""
    words = [word for row in rows for word in row]
    narrow = [word for word in words if not any(_spans(word, row) for row in rows)] or words
    bands: list[tuple[float, float]] = []
    for word in sorted(narrow, key=lambda word: (word.left, word.right)):
        if bands and word.left < bands[-1][1] - COLUMN_TOLERANCE:
            bands[-1] = (bands[-1][0], max(bands[-1][1], word.right))
        else:
            bands.append((word.left, word.right))
    return bands


def _spans(word: Word, row: list[Word]) -> bool:
    over = (_shared(word.left, word.right, other.left, other.right) for other in row)
    return sum(shared > COLUMN_TOLERANCE for shared in over) > 1


def _cells(number: int, row: list[Word], bands: list[tuple[float, float]]) -> list[GridCell]:
    """The row's words by the columns they touch; words that touch a common column share a cell."""
    cells: list[GridCell] = []
    for word in row:
        first, end = _touched(word, bands)
        if cells and first < cells[-1].end_column:
            last = cells[-1]
            end = max(end, last.end_column)
            cells[-1] = GridCell(number, last.first_column, end, _merged(last.content, word))
        else:
            cells.append(GridCell(number, first, end, word))
    return cells


def _touched(word: Word, bands: list[tuple[float, float]]) -> tuple[int, int]:
    hit = [at for at, band in enumerate(bands) if _shared(word.left, word.right, *band) > COLUMN_TOLERANCE]
    if hit:
        return hit[0], hit[-1] + 1
    middle = (word.left + word.right) / 2
    nearest = min(range(len(bands)), key=lambda at: abs(sum(bands[at]) / 2 - middle))
    return nearest, nearest + 1


def _shared(left: float, right: float, other_left: float, other_right: float) -> float:
    return min(right, other_right) - max(left, other_left)
