"""A table's rows, columns and spans, from the positions of its words and the lines drawn between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.cells import GridCell, cells_of, merge_overlapping_cells
from ingest_assets.parsing.pdf.columns import column_of, column_splits
from ingest_assets.parsing.pdf.content import PageContent
from ingest_assets.parsing.pdf.groups import group_rows
from ingest_assets.parsing.pdf.heights import normalize_heights
from ingest_assets.parsing.pdf.lines import Word, WordIndex, is_beside
from ingest_assets.parsing.pdf.rivers import River, find_rivers
from ingest_assets.parsing.pdf.rules import Rule, horizontal_rules, vertical_rules, without_underlines
from ingest_assets.parsing.pdf.spans import expand_spans, split_band
from ingest_assets.parsing.pdf.table_rows import Band, Text, bands_of

MAX_WORD_GAP = 0.6  # of the text's height; a wider gap separates two cells
MIN_COLUMN_GAP = 0.35  # of the text's height, at a column split
SAME_LINE = 0.45  # of the text's height: the maximum distance of the centres of two words on one line
SMALL = 0.75  # of the usual height: smaller words are superscripts or subscripts
MIN_REACH = 0.3  # of the text's height that a text must extend into a column to be in it
REACH = 3.0  # points around a table where its lines may be
MAX_HEADER_ROWS = 4


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. Every word is in exactly one cell, and cells do not overlap."""

    rows: int
    columns: int
    cells: tuple[GridCell, ...]


def grid_of(words: Sequence[Word], lines: Sequence[Box], box: Box) -> Grid:
    """Return the table in `box` with these words; `lines` are the thin boxes drawn on the page."""
    visible = [word for word in words if word.text.strip()]
    if not visible:
        return Grid(0, 0, ())
    area = bounding_box([box, *(word.box for word in visible)])
    near = [line for line in lines if line.share_in(area.expanded(2 * REACH, 2 * REACH)) > 0.6]
    near = without_underlines(near, visible)
    size = median(word.box.height for word in visible)
    lines_of_words = text_rows(visible, size)
    verticals = vertical_rules(near)
    rivers = [] if verticals else find_rivers(lines_of_words, size)
    phrases = [_phrases(row, (), rivers) for row in lines_of_words]
    splits = column_splits(phrases, lines_of_words, area, verticals, size, rivers)
    rows = [
        [_text(phrase, splits, size, line) for phrase in _phrases(row, splits, rivers)]
        for line, row in enumerate(lines_of_words)
    ]
    rows, splits = _without_empty_sides(rows, splits)
    bands = bands_of(rows, horizontal_rules(near), bounding_box(word.box for word in visible))
    return _grid(bands, splits, verticals, size)


def _without_empty_sides(rows: list[list[Text]], splits: list[float]) -> tuple[list[list[Text]], list[float]]:
    """Remove columns without text on either side, which lines around the table create."""
    first = min(text.first for row in rows for text in row)
    last = max(text.end for row in rows for text in row)
    moved = [[replace(text, first=text.first - first, end=text.end - first) for text in row] for row in rows]
    return moved, splits[first : last - 1]


def table_words(content: PageContent, lines: Sequence[Box]) -> list[Word]:
    """Return the words of a table's lines; for a line without words (OCR), its pieces."""
    words = WordIndex(normalize_heights(content.words))
    unique: dict[Word, None] = {}
    for line in lines:
        within = words.within(line, slack=1.0)
        pieces = [piece for piece in content.pieces if line.expanded(1, 1).contains_middle_of(piece.box)]
        unique |= dict.fromkeys(within or pieces)
    return list(unique)


def text_rows(words: Sequence[Word], size: float) -> list[list[Word]]:
    """Return words by rows, from left to right; superscripts and subscripts are part of their row."""
    small = [word for word in words if word.box.height < SMALL * size]
    large = [word for word in words if word.box.height >= SMALL * size] or words
    rows: list[list[Word]] = []
    for word in sorted(large, key=lambda word: (word.box.middle_y, word.box.left)):
        if rows and (is_beside(rows[-1][0].box, word.box) or _distance(rows[-1], word) < SAME_LINE * size):
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


def _phrases(row: Sequence[Word], splits: Sequence[float], rivers: Sequence[River]) -> list[Word]:
    """Join neighbours that are separated by a space, unless there is a column split between them."""
    phrases = [row[0]]
    for word in row[1:]:
        last = phrases[-1]
        height = min(last.box.height, word.box.height)
        gap = word.box.left - last.box.right
        is_split = any(last.box.right - 1 <= x <= word.box.left + 1 for x in splits)
        is_apart = gap > (MIN_COLUMN_GAP if is_split else MAX_WORD_GAP) * height
        if is_apart or any(river.separates(last, word) for river in rivers):
            phrases.append(word)
        else:
            text = f"{last.text.strip()} {word.text.strip()}"
            phrases[-1] = replace(last, box=bounding_box([last.box, word.box]), text=text)
    return phrases


def _text(phrase: Word, splits: Sequence[float], size: float, line: int) -> Text:
    """Return a phrase with the columns that it extends into by more than a minimum."""
    slack = min(MIN_REACH * size, phrase.box.width / 3)
    first = column_of(phrase.box.left + slack, splits)
    end = column_of(phrase.box.right - slack, splits) + 1
    return Text(phrase.box, phrase.text, first, max(end, first + 1), line)


def _grid(bands: Sequence[Band], splits: Sequence[float], verticals: Sequence[Rule], size: float) -> Grid:
    ends = _ends(bands, len(splits) + 1)
    cells: list[GridCell] = []
    count, headers = 0, 0
    for number, band in enumerate(bands):
        if band.partial:
            band_cells = split_band(band, count, splits, bool(verticals), size)
        else:
            is_ruled = len(bands) > 1
            grouped = group_rows(band, ends, size, is_header=is_ruled and number == 0, is_ruled=is_ruled)
            wide = [expand_spans(row, splits, verticals, is_header=number == 0) for row in grouped.rows]
            band_cells = [cell for i, row in enumerate(wide) for cell in cells_of(row, count + i)]
            band_cells += [
                cell
                for label in grouped.labels
                for cell in cells_of([label.text], count + label.first, count + label.end)
            ]
        cells += band_cells
        count = max(cell.end_row for cell in band_cells)
        if number == 0:
            headers = count if len(bands) > 1 and count <= MAX_HEADER_ROWS else 1
    marked = (
        replace(cell, is_header=cell.row < headers and count > headers)
        for cell in merge_overlapping_cells(cells)
    )
    return Grid(count, len(splits) + 1, tuple(marked))


def _ends(bands: Sequence[Band], columns: int) -> list[float]:
    """Return the right edge of the text of each column."""
    ends = [0.0] * columns
    for band in bands:
        for row in band.rows:
            for text in row:
                if text.end == text.first + 1:
                    ends[text.first] = max(ends[text.first], text.box.right)
    return ends
