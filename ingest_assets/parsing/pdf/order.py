"""The order in which the blocks of a page are read.

A page is cut where white space goes through it: into bands from top to bottom, and into columns where bands
that follow each other share a gutter. Short pieces that stand in rows (labels and their text, entries and
their page numbers) are read along the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ingest_assets.parsing.pdf.boxes import Box, around

MIN_GUTTER = 4.0  # points
SHRINK = 0.15  # of a line's height, at top and bottom: boxes of text overlap by that without meaning anything
MAX_LABEL_LINES = 2
LABEL_WIDTH = 0.5  # of the other side's width, at most, unless there are many rows
MANY_ROWS = 4
ALIGNED = 0.6  # of a line's height, between the tops of a label and its text
MAX_BRIDGE = 0.1  # share of the area that may stand in the way of columns that are there all the same
MANY = 150  # pieces that nothing separates: a map or a drawing, which has no reading order
MIN_COLUMN = 0.25  # share of the area that such a column must have


@dataclass(frozen=True, slots=True)
class Piece:
    """A block's place, how many lines of text it has, and whether it stands over what follows."""

    box: Box
    lines: int = 1
    size: float = 10.0  # height of its text
    heads: bool = False


def reading_order(pieces: Sequence[Piece], *, right_to_left: bool = False) -> list[int]:
    """Places of the pieces in the order of reading."""
    slim = []
    for piece in pieces:
        box = piece.box.grown(0, -min(SHRINK * piece.size, piece.box.height / 4))
        if right_to_left:
            box = Box(-box.right, box.top, -box.left, box.bottom)
        slim.append(replace(piece, box=box))
    return _ordered(list(range(len(slim))), slim)


def _ordered(own: list[int], pieces: Sequence[Piece]) -> list[int]:
    if len(own) < 2:
        return own
    columns = _columns(own, pieces)
    if len(columns) > 1:
        return [at for column in columns for at in _ordered(column, pieces)]
    bands = _bands(own, pieces)
    if len(bands) == 1:
        return _loosely_ordered(own, pieces)
    found: list[int] = []
    while bands:
        count = _bands_with_columns(bands, pieces)
        group = [at for band in bands[:count] for at in band]
        found += _ordered(group, pieces) if len(group) < len(own) else _loosely_ordered(group, pieces)
        bands = bands[count:]
    return found


def _bands_with_columns(bands: Sequence[Sequence[int]], pieces: Sequence[Piece]) -> int:
    """How many of the first bands share a gutter; one, if the first has none.

    A heading at the end of them belongs to what follows.
    """
    count = 1
    group: list[int] = []
    for number, band in enumerate(bands, start=1):
        group = [*group, *band]
        if len(_columns(group, pieces)) > 1:
            count = number
        elif number > 1 and not _gutters(group, pieces):
            break
    while 1 < count < len(bands) and all(pieces[at].heads for at in bands[count - 1]):
        count -= 1
    return count


def _columns(own: Sequence[int], pieces: Sequence[Piece]) -> list[list[int]]:
    """The pieces by the columns they stand in, from left to right; one list if they are no columns."""
    found: list[list[int]] = []
    for column in _split(own, _gutters(own, pieces), pieces):
        if found and (
            _stand_in_rows(found[-1], column, pieces) or not _stand_abreast(found[-1], column, pieces)
        ):
            found[-1] += column
        else:
            found.append(column)
    return found


def _stand_abreast(left: Sequence[int], right: Sequence[int], pieces: Sequence[Piece]) -> bool:
    """Columns stand beside each other, not one below the other."""
    one, other = (around(pieces[at].box for at in side) for side in (left, right))
    return one.shared_height(other) > 0


def _split(own: Sequence[int], gutters: Sequence[float], pieces: Sequence[Piece]) -> list[list[int]]:
    columns: list[list[int]] = [[] for _ in range(len(gutters) + 1)]
    for at in own:
        columns[sum(pieces[at].box.middle_x > gutter for gutter in gutters)].append(at)
    return columns


def _gutters(own: Sequence[int], pieces: Sequence[Piece]) -> list[float]:
    """The middles of the white strips that go through all the pieces from top to bottom."""
    found: list[float] = []
    reach: float | None = None
    for box in sorted((pieces[at].box for at in own), key=lambda box: (box.left, box.right)):
        if reach is not None and box.left > reach + MIN_GUTTER:
            found.append((box.left + reach) / 2)
        reach = box.right if reach is None else max(reach, box.right)
    return found


def _stand_in_rows(left: Sequence[int], right: Sequence[int], pieces: Sequence[Piece]) -> bool:
    """One side is nothing but short labels, each beside the first line of something on the other side."""
    return _are_labels(left, right, pieces) or _are_labels(right, left, pieces)


def _are_labels(labels: Sequence[int], others: Sequence[int], pieces: Sequence[Piece]) -> bool:
    if any(pieces[at].lines > MAX_LABEL_LINES for at in labels):
        return False
    beside = [at for at in labels if any(_aligned(pieces[at], pieces[other]) for other in others)]
    if len(beside) < 0.8 * len(labels):
        return False
    is_narrow = _width(labels, pieces) <= LABEL_WIDTH * _width(others, pieces)
    return is_narrow or len(beside) >= MANY_ROWS


def _width(own: Sequence[int], pieces: Sequence[Piece]) -> float:
    return around(pieces[at].box for at in own).width


def _aligned(one: Piece, other: Piece) -> bool:
    return abs(one.box.top - other.box.top) <= ALIGNED * max(one.size, other.size)


def _bands(own: Sequence[int], pieces: Sequence[Piece]) -> list[list[int]]:
    """The pieces by the bands they stand in, from top to bottom, with white space between the bands."""
    bands: list[list[int]] = []
    reach = 0.0
    for at in sorted(own, key=lambda at: (pieces[at].box.top, pieces[at].box.left)):
        box = pieces[at].box
        if bands and box.top < reach:
            bands[-1].append(at)
            reach = max(reach, box.bottom)
        else:
            bands.append([at])
            reach = box.bottom
    return bands


def _loosely_ordered(own: list[int], pieces: Sequence[Piece]) -> list[int]:
    """Pieces that no white space separates: columns that little stands in the way of, else from the top."""
    gutter = _loose_gutter(own, pieces)
    if gutter is None:
        return _from_top(own, pieces)
    return [at for column in _split(own, [gutter], pieces) for at in _ordered(column, pieces)]


def _loose_gutter(own: Sequence[int], pieces: Sequence[Piece]) -> float | None:
    boxes = [pieces[at].box for at in own]
    total = sum(box.area for box in boxes)
    best: tuple[float, float] | None = None
    for x in sorted({box.right + MIN_GUTTER / 2 for box in boxes}):
        bridges = sum(box.area for box in boxes if box.left < x < box.right)
        left = sum(box.area for box in boxes if box.middle_x < x)
        if bridges <= MAX_BRIDGE * total and MIN_COLUMN * total <= left <= (1 - MIN_COLUMN) * total:
            best = min(best or (bridges, x), (bridges, x))
    return best[1] if best else None


def _from_top(own: Sequence[int], pieces: Sequence[Piece]) -> list[int]:
    """What is above comes first, and of what is free to come, what is farthest left."""
    rest = sorted(own, key=lambda at: (pieces[at].box.top, pieces[at].box.left))
    if len(rest) > MANY:
        return rest
    found: list[int] = []
    while rest:
        free = [
            at
            for at in rest
            if not any(_is_above(pieces[one].box, pieces[at].box) for one in rest if one != at)
        ]
        chosen = min(free, key=lambda at: (pieces[at].box.left, pieces[at].box.top)) if free else rest[0]
        found.append(chosen)
        rest.remove(chosen)
    return found


def _is_above(one: Box, other: Box) -> bool:
    return one.shared_width(other) > 0 and one.middle_y < other.middle_y
