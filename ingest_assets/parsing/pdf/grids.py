"""A table's rows, columns and spans from where its words stand and from the lines drawn between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from ingest_assets.parsing.pdf.boxes import Box, around
from ingest_assets.parsing.pdf.cells import GridCell, apart, cells_of
from ingest_assets.parsing.pdf.columns import column_of, separators
from ingest_assets.parsing.pdf.content import PageContent
from ingest_assets.parsing.pdf.groups import grouped
from ingest_assets.parsing.pdf.heights import evened
from ingest_assets.parsing.pdf.lines import Word, WordsByPlace, stands_beside
from ingest_assets.parsing.pdf.rivers import River, rivers
from ingest_assets.parsing.pdf.rules import Rule, horizontal, vertical, without_underlines
from ingest_assets.parsing.pdf.spans import divided, stretched
from ingest_assets.parsing.pdf.table_rows import Band, Text, bands_of

MAX_WORD_GAP = 0.6  # of the text's height; a wider gap separates two cells
MIN_COLUMN_GAP = 0.35  # of the text's height, where columns are known to meet
SAME_LINE = 0.45  # of the text's height, between the middles of two words on one line
SMALL = 0.75  # of the usual height
MIN_REACH = 0.3  # of the text's height, that a text reaches into a column to be in it
REACH = 3.0  # points around a table in which its lines may be
MAX_HEADER_ROWS = 4


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. Every word is in exactly one cell, and no two cells share a place."""

    rows: int
    columns: int
    cells: tuple[GridCell, ...]


def grid_of(words: Sequence[Word], lines: Sequence[Box], box: Box) -> Grid:
    """The table in `box` with these words; `lines` are the thin boxes drawn on the page."""
    filled = [word for word in words if word.text.strip()]
    if not filled:
        return Grid(0, 0, ())
    area = around([box, *(word.box for word in filled)])
    near = [line for line in lines if line.share_in(area.grown(2 * REACH, 2 * REACH)) > 0.6]
    near = without_underlines(near, filled)
    size = median(word.box.height for word in filled)
    lines_of_words = text_rows(filled, size)
    down = vertical(near)
    close = [] if down else rivers(lines_of_words, size)
    phrases = [_phrases(row, (), close) for row in lines_of_words]
    between = separators(phrases, lines_of_words, area, down, size, close)
    rows = [
        [_text(phrase, between, size, line) for phrase in _phrases(row, between, close)]
        for line, row in enumerate(lines_of_words)
    ]
    rows, between = _without_empty_sides(rows, between)
    bands = bands_of(rows, horizontal(near), around(word.box for word in filled))
    return _grid(bands, between, down, size)


def _without_empty_sides(
    rows: list[list[Text]], between: list[float]
) -> tuple[list[list[Text]], list[float]]:
    """Lines around a table make no columns."""
    first = min(text.first for row in rows for text in row)
    last = max(text.end for row in rows for text in row)
    moved = [[replace(text, first=text.first - first, end=text.end - first) for text in row] for row in rows]
    return moved, between[first : last - 1]


def table_words(content: PageContent, lines: Sequence[Box]) -> list[Word]:
    """The words of a table's lines; a line without words of its own (OCR) stands for itself."""
    words = WordsByPlace(evened(content.words))
    found: dict[Word, None] = {}
    for line in lines:
        within = words.within(line, slack=1.0)
        pieces = [piece for piece in content.pieces if line.grown(1, 1).holds_middle_of(piece.box)]
        found |= dict.fromkeys(within or pieces)
    return list(found)


def text_rows(words: Sequence[Word], size: float) -> list[list[Word]]:
    """Words at one height, from left to right; small signs above and below a line belong to it."""
    small = [word for word in words if word.box.height < SMALL * size]
    large = [word for word in words if word.box.height >= SMALL * size] or words
    rows: list[list[Word]] = []
    for word in sorted(large, key=lambda word: (word.box.middle_y, word.box.left)):
        if rows and (
            stands_beside(rows[-1][0].box, word.box) or _distance(rows[-1], word) < SAME_LINE * size
        ):
            rows[-1].append(word)
        else:
            rows.append([word])
    for word in small if len(small) < len(words) else ():
        nearest = min(rows, key=lambda row: _distance(row, word))
        if _distance(nearest, word) < size:
            nearest.append(word)
        else:
            rows.append([word])
    ordered = sorted(rows, key=lambda row: row[0].box.middle_y)
    return [sorted(row, key=lambda word: (word.box.left, word.box.right)) for row in ordered]


def _distance(row: Sequence[Word], word: Word) -> float:
    return abs(word.box.middle_y - sum(one.box.middle_y for one in row) / len(row))


def _phrases(row: Sequence[Word], between: Sequence[float], close: Sequence[River]) -> list[Word]:
    """Neighbours that a space separates are one text, unless columns meet between them."""
    phrases = [row[0]]
    for word in row[1:]:
        last = phrases[-1]
        height = min(last.box.height, word.box.height)
        gap = word.box.left - last.box.right
        is_split = any(last.box.right - 1 <= x <= word.box.left + 1 for x in between)
        is_apart = gap > (MIN_COLUMN_GAP if is_split else MAX_WORD_GAP) * height
        if is_apart or any(river.parts(last, word) for river in close):
            phrases.append(word)
        else:
            text = f"{last.text.strip()} {word.text.strip()}"
            phrases[-1] = replace(last, box=around([last.box, word.box]), text=text)
    return phrases


def _text(phrase: Word, between: Sequence[float], size: float, line: int) -> Text:
    """The columns that a phrase reaches into by more than a hair."""
    slack = min(MIN_REACH * size, phrase.box.width / 3)
    first = column_of(phrase.box.left + slack, between)
    end = column_of(phrase.box.right - slack, between) + 1
    return Text(phrase.box, phrase.text, first, max(end, first + 1), line)


def _grid(bands: Sequence[Band], between: Sequence[float], down: Sequence[Rule], size: float) -> Grid:
    ends = _ends(bands, len(between) + 1)
    cells: list[GridCell] = []
    count, headers = 0, 0
    for number, band in enumerate(bands):
        if band.partial:
            own = divided(band, count, between, bool(down), size)
        else:
            is_ruled = len(bands) > 1
            found = grouped(band, ends, size, is_header=is_ruled and number == 0, is_ruled=is_ruled)
            wide = [stretched(row, between, down, is_header=number == 0) for row in found.rows]
            own = [cell for at, row in enumerate(wide) for cell in cells_of(row, count + at)]
            own += [
                cell
                for label in found.labels
                for cell in cells_of([label.text], count + label.first, count + label.end)
            ]
        cells += own
        count = max(cell.end_row for cell in own)
        if number == 0:
            headers = count if len(bands) > 1 and count <= MAX_HEADER_ROWS else 1
    marked = (replace(cell, is_header=cell.row < headers and count > headers) for cell in apart(cells))
    return Grid(count, len(between) + 1, tuple(marked))


def _ends(bands: Sequence[Band], columns: int) -> list[float]:
    """How far to the right the text of each column goes."""
    ends = [0.0] * columns
    for band in bands:
        for row in band.rows:
            for text in row:
                if text.end == text.first + 1:
                    ends[text.first] = max(ends[text.first], text.box.right)
    return ends
