"""The lines of a page as a reader sees them: pieces that stand side by side, brought together."""

from collections.abc import Sequence
from itertools import pairwise

from ingest_assets.parsing.pdf.content import Region
from ingest_assets.parsing.pdf.direction import leaning
from ingest_assets.parsing.pdf.lines import Line, Word, WordsByPlace, joined, stands_beside, styled_line
from ingest_assets.parsing.pdf.markers import bullet_of, enumeration_of, section_number_of

# How far apart two pieces may stand and be one line, in heights of the text.
MAX_GAP = 1.0
MAX_GAP_IN_REGION = 1.4
MAX_GAP_AFTER_MARKER = 4.0
LATEST = 40
LONG = 8.0  # heights of the text: how wide a piece beside a gutter is at least
MIN_GUTTER_ROWS = 5
_LONGEST_MARKER = 8


def lines_of(pieces: Sequence[Word], words: WordsByPlace, regions: Sequence[Region]) -> list[Line]:
    """Lines from top to bottom, those at one height from left to right."""
    styled = [
        styled_line(piece, words.within(piece.box), order)
        for order, piece in enumerate(pieces)
        if piece.text.strip() and piece.box.area > 0
    ]
    is_foreign = sum(leaning(line.text) for line in styled) > 0
    rows = rows_of(styled)
    gutters = _gutters(rows)
    groups = [group for row in rows for group in _groups(row, regions, gutters)]
    return [joined(group, in_right_to_left=is_foreign) for group in groups]


def rows_of(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that stand side by side, each row from left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: (line.box.middle_y, line.box.left)):
        row = next((row for row in reversed(rows[-3:]) if _is_in_row(line, row)), None)
        if row is None:
            rows.append([line])
        else:
            row.append(line)
    return [sorted(row, key=lambda line: (line.box.left, line.box.right)) for row in rows]


def _is_in_row(line: Line, row: Sequence[Line]) -> bool:
    """Beside one of those that came last: the others are no nearer."""
    return any(stands_beside(one.box, line.box) for one in row[-LATEST:])


def _gutters(rows: Sequence[Sequence[Line]]) -> list[float]:
    """Places where, row after row, one long piece ends and the next begins: between columns of text.

    The boxes that OCR draws around lines reach so far that nothing else tells columns from words.
    """
    gaps = [
        (one.box.right, other.box.left)
        for row in rows
        for one, other in pairwise(row)
        if min(one.box.width, other.box.width) > LONG * max(one.size, other.size)
    ]
    found: list[float] = []
    for left, right in gaps if len(gaps) >= MIN_GUTTER_ROWS else ():
        x = (left + right) / 2
        if right > left and not any(abs(x - other) < right - left for other in found):
            found += [x] if sum(a < x < b for a, b in gaps) >= MIN_GUTTER_ROWS else []
    return found


def _groups(
    row: Sequence[Line], regions: Sequence[Region], gutters: Sequence[float] = ()
) -> list[list[Line]]:
    groups: list[list[Line]] = [[row[0]]]
    for line in row[1:]:
        last = groups[-1][-1]
        gap = -last.box.shared_width(line.box)
        is_parted = any(last.box.right < x < line.box.left for x in gutters)
        if not is_parted and gap <= _max_gap(last, line, regions) * min(last.size, line.size):
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
    """Whether the text is only a bullet, a counter or a section number."""
    alone = f"{text.strip()} x"
    if not 2 < len(alone) <= _LONGEST_MARKER + 2:
        return False
    found = bullet_of(alone) or enumeration_of(alone) or section_number_of(alone)
    return len(found) == len(alone) - 2


def _region(line: Line, regions: Sequence[Region]) -> Region | None:
    return next((region for region in regions if region.box.holds_middle_of(line.box)), None)
