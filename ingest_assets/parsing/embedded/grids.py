"""A table's rows, columns and spans from where its words stand and from the lines drawn between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from ingest_assets.parsing.embedded.boxes import Box, around
from ingest_assets.parsing.embedded.columns import column_of, separators
from ingest_assets.parsing.embedded.content import PageContent
from ingest_assets.parsing.embedded.heights import evened
from ingest_assets.parsing.embedded.lines import Word, WordsByPlace, stands_beside
from ingest_assets.parsing.embedded.rules import Rule, horizontal, vertical
from ingest_assets.parsing.embedded.table_rows import Band, Row, Text, bands_of, joined_rows

MAX_WORD_GAP = 0.6  # of the text's height; a wider gap separates two cells
MIN_COLUMN_GAP = 0.35  # of the text's height, where columns are known to meet
SAME_LINE = 0.45  # of the text's height, between the middles of two words on one line
SMALL = 0.75  # of the usual height
MIN_REACH = 0.3  # of the text's height, that a text reaches into a column to be in it
REACH = 3.0  # points around a table in which its lines may be
MAX_HEADER_ROWS = 4
CENTRED = 0.2  # of a column's width, between a text's middle and where two columns meet
STRADDLES = 0.5  # of the text's height, between a text's middle and a line beside it


@dataclass(frozen=True, slots=True)
class GridCell:
    """Text over some rows and columns; the ends are not included."""

    row: int
    end_row: int
    column: int
    end_column: int
    box: Box
    text: str
    is_header: bool = False


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
    size = median(word.box.height for word in filled)
    lines_of_words = text_rows(filled, size)
    down = vertical(near)
    between = separators([_phrases(row, ()) for row in lines_of_words], lines_of_words, area, down, size)
    rows = [
        [_text(phrase, between, size, line) for phrase in _phrases(row, between)]
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
    rows: list[list[Word]] = []
    for word in sorted(set(words) - set(small) or words, key=lambda word: (word.box.middle_y, word.box.left)):
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


def _phrases(row: Sequence[Word], between: Sequence[float]) -> list[Word]:
    """Neighbours that a space separates are one text, unless columns meet between them."""
    phrases = [row[0]]
    for word in row[1:]:
        last = phrases[-1]
        height = min(last.box.height, word.box.height)
        gap = word.box.left - last.box.right
        is_split = any(last.box.right - 1 <= x <= word.box.left + 1 for x in between)
        if gap > (MIN_COLUMN_GAP if is_split else MAX_WORD_GAP) * height:
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
            own = _divided(band, count, between, bool(down), size)
        else:
            rows = joined_rows(band, ends, size, is_header=number == 0 and len(bands) > 1)
            wide = [stretched(row, between, down, is_header=number == 0) for row in rows]
            own = [cell for at, row in enumerate(wide) for cell in _cells(row, count + at)]
        cells += own
        count = max(cell.end_row for cell in own)
        if number == 0:
            headers = count if len(bands) > 1 and count <= MAX_HEADER_ROWS else 1
    marked = (replace(cell, is_header=cell.row < headers and count > headers) for cell in _apart(cells))
    return Grid(count, len(between) + 1, tuple(marked))


def _apart(cells: Sequence[GridCell]) -> list[GridCell]:
    """The cells in order; such as would share a place made one."""
    found: list[GridCell] = []
    for cell in sorted(cells, key=lambda cell: (cell.row, cell.column)):
        while other := next((one for one in found if _share_a_place(one, cell)), None):
            found.remove(other)
            cell = GridCell(
                row=min(other.row, cell.row),
                end_row=max(other.end_row, cell.end_row),
                column=min(other.column, cell.column),
                end_column=max(other.end_column, cell.end_column),
                box=around([other.box, cell.box]),
                text=f"{other.text} {cell.text}",
            )
        found.append(cell)
    return found


def _share_a_place(one: GridCell, other: GridCell) -> bool:
    is_level = one.row < other.end_row and other.row < one.end_row
    return is_level and one.column < other.end_column and other.column < one.end_column


def stretched(row: Row, between: Sequence[float], down: Sequence[Rule], *, is_header: bool) -> Row:
    """The row's texts over all the columns that they stand over.

    Where lines separate columns elsewhere but not beside a text, it reaches to the next line; in a heading,
    a text that is set in the middle of two columns stands over both.
    """
    found: Row = []
    for text in row:
        first, end = text.first, text.end
        taken = {column for one in row if one is not text for column in range(one.first, one.end)}
        while end <= len(between) and end not in taken and _is_open(between[end - 1], text, down):
            end += 1
        while first > 0 and first - 1 not in taken and _is_open(between[first - 1], text, down):
            first -= 1
        if is_header and end == first + 1:
            first, end = _centred(text, between, taken)
        found.append(replace(text, first=first, end=end))
    return found


def _is_open(x: float, text: Text, down: Sequence[Rule]) -> bool:
    """There is a line at this place of the table, but not beside this text."""
    here = [rule for rule in down if abs(rule.at - x) <= REACH]
    return bool(here) and not any(rule.covers(text.box.top, text.box.bottom) > 0.5 for rule in here)


def _centred(text: Text, between: Sequence[float], taken: set[int]) -> tuple[int, int]:
    for at, x in enumerate(between):
        if at in taken or at + 1 in taken or text.first not in (at, at + 1):
            continue
        left = between[at - 1] if at else None
        right = between[at + 1] if at + 1 < len(between) else None
        widths = [abs(x - edge) for edge in (left, right) if edge is not None]
        if widths and abs(text.box.middle_x - x) < CENTRED * min(widths):
            return at, at + 2
    return text.first, text.end


def _ends(bands: Sequence[Band], columns: int) -> list[float]:
    """How far to the right the text of each column goes."""
    ends = [0.0] * columns
    for band in bands:
        for row in band.rows:
            for text in row:
                if text.end == text.first + 1:
                    ends[text.first] = max(ends[text.first], text.box.right)
    return ends


def _cells(row: Row, number: int, end: int | None = None) -> list[GridCell]:
    """The row's texts by the columns they fill; texts that share a column share a cell."""
    groups: list[list[Text]] = []
    for text in sorted(row, key=lambda text: (text.first, text.end)):
        if groups and text.first < max(one.end for one in groups[-1]):
            groups[-1].append(text)
        else:
            groups.append([text])
    return [_cell(group, number, number + 1 if end is None else end) for group in groups]


def _cell(texts: Sequence[Text], row: int, end_row: int) -> GridCell:
    ordered = sorted(texts, key=lambda text: (text.line, text.box.left))
    return GridCell(
        row=row,
        end_row=end_row,
        column=min(text.first for text in texts),
        end_column=max(text.end for text in texts),
        box=around(text.box for text in texts),
        text=" ".join(text.text.strip() for text in ordered),
    )


def _divided(
    band: Band, number: int, between: Sequence[float], is_ruled: bool, size: float
) -> list[GridCell]:
    """The cells of a band with shorter lines in it: rows where the lines are, one tall row beside them."""
    heights = sorted({round(rule.at) for rule in band.partial})
    levels: list[Row] = [[] for _ in range(len(heights) + 1)]
    beside: dict[int, list[Text]] = {}
    edges = [float("-inf"), *between, float("inf")]
    for row in band.rows:
        for text in row:
            if any(_is_over(rule, text, edges) for rule in band.partial):
                levels[sum(text.box.middle_y > height for height in heights)].append(text)
            else:
                beside.setdefault(text.first, []).append(text)
    cells = []
    for texts in beside.values():
        places = {sum(text.box.middle_y > height for height in heights) for text in texts}
        straddles = any(
            abs(text.box.middle_y - height) < STRADDLES * size for text in texts for height in heights
        )
        if is_ruled or straddles or len(places) > 1:
            cells += _cells(texts, number, number + len(levels))
        else:
            levels[places.pop()] += texts
    for at, level in enumerate(levels):
        wide = [
            _widened(text, level, band.partial, edges, heights[at] if at < len(heights) else None)
            for text in level
        ]
        cells += _cells(wide, number + at)
    return cells


def _is_over(rule: Rule, text: Text, edges: Sequence[float]) -> bool:
    return any(_goes_along(rule, column, edges) for column in range(text.first, text.end))


def _goes_along(rule: Rule, column: int, edges: Sequence[float]) -> bool:
    """Whether a line goes along a column; at the sides of a table a column ends where the line does."""
    left, right = max(edges[column], rule.start - 1e3), min(edges[column + 1], rule.end + 1e3)
    left = rule.start if edges[column] == float("-inf") else left
    right = rule.end if edges[column + 1] == float("inf") else right
    return right > left and rule.covers(left, right) > 0.5


def _widened(
    text: Text, level: Row, partial: Sequence[Rule], edges: Sequence[float], height: int | None
) -> Text:
    """A text over a line that goes along several columns stands over them all, if nothing else does."""
    for rule in partial:
        if height is None or round(rule.at) != height or not _is_over(rule, text, edges):
            continue
        columns = [column for column in range(len(edges) - 1) if _goes_along(rule, column, edges)]
        first, end = min([*columns, text.first]), max([*columns, text.end - 1]) + 1
        if not any(one is not text and one.first < end and first < one.end for one in level):
            return replace(text, first=first, end=end)
    return text
