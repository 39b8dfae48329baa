"""The lines of a page: pieces of text that are side by side, joined."""

from collections.abc import Sequence
from itertools import pairwise

from ingest_assets.parsing.pdf.content import Region
from ingest_assets.parsing.pdf.direction import right_to_left_balance
from ingest_assets.parsing.pdf.lines import Line, Word, WordIndex, is_beside, join_pieces, styled_line
from ingest_assets.parsing.pdf.markers import bullet_of, enumeration_of, section_number_of

# The widest gap between two pieces of one line, in heights of the text.
MAX_GAP = 1.0
MAX_GAP_IN_REGION = 1.4
MAX_GAP_AFTER_MARKER = 4.0
MAX_COMPARED = 40  # pieces of a row
LONG = 8.0  # heights of the text: the minimum width of a piece beside a gutter
MIN_GUTTER_ROWS = 5
_LONGEST_MARKER = 8


def lines_of(pieces: Sequence[Word], words: WordIndex, regions: Sequence[Region]) -> list[Line]:
    """Return lines from top to bottom, those of equal height from left to right."""
    styled = [
        styled_line(piece, words.within(piece.box), order)
        for order, piece in enumerate(pieces)
        if piece.text.strip() and piece.box.area > 0
    ]
    is_right_to_left = sum(right_to_left_balance(line.text) for line in styled) > 0
    rows = rows_of(styled)
    gutters = _gutters(rows)
    groups = [group for row in rows for group in _split_row(row, regions, gutters)]
    return [join_pieces(group, in_right_to_left=is_right_to_left) for group in groups]


def rows_of(lines: Sequence[Line]) -> list[list[Line]]:
    """Return lines in rows, each from left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.box.middle_y, line.box.left)):
        row = next((row for row in reversed(rows[-3:]) if _is_in_row(line, row)), None)
        if row is None:
            rows.append([line])
        else:
            row.append(line)
    return [sorted(row, key=lambda line: (line.box.left, line.box.right)) for row in rows]


def _is_in_row(line: Line, row: Sequence[Line]) -> bool:
    """Compare with the last pieces only: earlier ones are no nearer."""
    return any(is_beside(one.box, line.box) for one in row[-MAX_COMPARED:])


def _gutters(rows: Sequence[Sequence[Line]]) -> list[float]:
    """Return the x positions where many rows have a long piece on either side: between columns of text.

    OCR's boxes are so wide that the size of gaps does not distinguish columns from words.
    """
    gaps = [
        (one.box.right, other.box.left)
        for row in rows
        for one, other in pairwise(row)
        if min(one.box.width, other.box.width) > LONG * max(one.size, other.size)
    ]
    gutters: list[float] = []
    for left, right in gaps if len(gaps) >= MIN_GUTTER_ROWS else ():
        x = (left + right) / 2
        if right > left and not any(abs(x - other) < right - left for other in gutters):
            gutters += [x] if sum(a < x < b for a, b in gaps) >= MIN_GUTTER_ROWS else []
    return gutters


def _split_row(
    row: Sequence[Line], regions: Sequence[Region], gutters: Sequence[float] = ()
) -> list[list[Line]]:
    groups: list[list[Line]] = [[row[0]]]
    for line in row[1:]:
        last = groups[-1][-1]
        gap = -last.box.shared_width(line.box)
        is_split = any(last.box.right < x < line.box.left for x in gutters)
        if not is_split and gap <= _max_gap(last, line, regions) * min(last.size, line.size):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _max_gap(last: Line, line: Line, regions: Sequence[Region]) -> float:
    if is_marker(last.text) and _region(last, regions) is _region(line, regions):
        return MAX_GAP_AFTER_MARKER
    same = _region(last, regions)
    return MAX_GAP_IN_REGION if same is not None and same is _region(line, regions) else MAX_GAP


def is_marker(text: str) -> bool:
    """True if the text is only a bullet, a counter or a section number."""
    alone = f"{text.strip()} x"
    if not 2 < len(alone) <= _LONGEST_MARKER + 2:
        return False
    marker = bullet_of(alone) or enumeration_of(alone) or section_number_of(alone)
    return len(marker) == len(alone) - 2


def _region(line: Line, regions: Sequence[Region]) -> Region | None:
    return next((region for region in regions if region.box.contains_middle_of(line.box)), None)
