"""The reading order of the blocks of a page.

A page is cut along white space: into bands from top to bottom, and into columns where consecutive bands share
a gutter. Short pieces in rows (labels with their texts, entries with their page numbers) are read by row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ingest_assets.parsing.pdf.boxes import Box, bounding_box

MIN_GUTTER = 4.0  # points
SHRINK = 0.15  # of a line's height, at top and bottom: boxes of text overlap by that much
MAX_LABEL_LINES = 2
LABEL_WIDTH = 0.5  # of the other side's width, at most; more with many rows
MANY_ROWS = 4
ALIGNED = 0.6  # of a line's height: the maximum distance between the tops of a label and its text
MAX_BRIDGE = 0.1  # share of the area that may cross a gutter between columns
MANY = 150  # pieces without white space between them: a map or a drawing, which has no reading order
MIN_COLUMN = 0.25  # share of the area that each of these columns must have


@dataclass(frozen=True, slots=True)
class Piece:
    """The box of a block, its number of lines, and whether it is the heading of what follows."""

    box: Box
    lines: int = 1
    size: float = 10.0  # height of its text
    is_heading: bool = False


def reading_order(pieces: Sequence[Piece], *, right_to_left: bool = False) -> list[int]:
    """Return the indices of the pieces in reading order."""
    slim = []
    for piece in pieces:
        box = piece.box.expanded(0, -min(SHRINK * piece.size, piece.box.height / 4))
        if right_to_left:
            box = Box(-box.right, box.top, -box.left, box.bottom)
        slim.append(replace(piece, box=box))
    return _ordered(list(range(len(slim))), slim)


def _ordered(indices: list[int], pieces: Sequence[Piece]) -> list[int]:
    if len(indices) < 2:
        return indices
    columns = _columns(indices, pieces)
    if len(columns) > 1:
        return [i for column in columns for i in _ordered(column, pieces)]
    bands = _bands(indices, pieces)
    if len(bands) == 1:
        return _loosely_ordered(indices, pieces)
    order: list[int] = []
    while bands:
        count = _bands_with_columns(bands, pieces)
        group = [i for band in bands[:count] for i in band]
        order += _ordered(group, pieces) if len(group) < len(indices) else _loosely_ordered(group, pieces)
        bands = bands[count:]
    return order


def _bands_with_columns(bands: Sequence[Sequence[int]], pieces: Sequence[Piece]) -> int:
    """Return how many of the first bands share a gutter; 1 if the first has none.

    Headings at their end belong to what follows.
    """
    count = 1
    group: list[int] = []
    for number, band in enumerate(bands, start=1):
        group = [*group, *band]
        if len(_columns(group, pieces)) > 1:
            count = number
        elif number > 1 and not _gutters(group, pieces):
            break
    while 1 < count < len(bands) and all(pieces[i].is_heading for i in bands[count - 1]):
        count -= 1
    return count


def _columns(indices: Sequence[int], pieces: Sequence[Piece]) -> list[list[int]]:
    """Return the pieces by columns, from left to right; a single list if there are no columns."""
    columns: list[list[int]] = []
    for column in _split(indices, _gutters(indices, pieces), pieces):
        if columns and (
            _form_rows(columns[-1], column, pieces) or not _share_height(columns[-1], column, pieces)
        ):
            columns[-1] += column
        else:
            columns.append(column)
    return columns


def _share_height(left: Sequence[int], right: Sequence[int], pieces: Sequence[Piece]) -> bool:
    """True if the columns are side by side, not one below the other."""
    one, other = (bounding_box(pieces[i].box for i in side) for side in (left, right))
    return one.shared_height(other) > 0


def _split(indices: Sequence[int], gutters: Sequence[float], pieces: Sequence[Piece]) -> list[list[int]]:
    columns: list[list[int]] = [[] for _ in range(len(gutters) + 1)]
    for i in indices:
        columns[sum(pieces[i].box.middle_x > gutter for gutter in gutters)].append(i)
    return columns


def _gutters(indices: Sequence[int], pieces: Sequence[Piece]) -> list[float]:
    """Return the middles of the white strips that separate all pieces from top to bottom."""
    gutters: list[float] = []
    reach: float | None = None
    for box in sorted((pieces[i].box for i in indices), key=lambda box: (box.left, box.right)):
        if reach is not None and box.left > reach + MIN_GUTTER:
            gutters.append((box.left + reach) / 2)
        reach = box.right if reach is None else max(reach, box.right)
    return gutters


def _form_rows(left: Sequence[int], right: Sequence[int], pieces: Sequence[Piece]) -> bool:
    """True if one side has only short labels, each beside the first line of a piece on the other side."""
    return _are_labels(left, right, pieces) or _are_labels(right, left, pieces)


def _are_labels(labels: Sequence[int], others: Sequence[int], pieces: Sequence[Piece]) -> bool:
    if any(pieces[i].lines > MAX_LABEL_LINES for i in labels):
        return False
    beside = [i for i in labels if any(_aligned(pieces[i], pieces[other]) for other in others)]
    if len(beside) < 0.8 * len(labels):
        return False
    is_narrow = _width(labels, pieces) <= LABEL_WIDTH * _width(others, pieces)
    return is_narrow or len(beside) >= MANY_ROWS


def _width(indices: Sequence[int], pieces: Sequence[Piece]) -> float:
    return bounding_box(pieces[i].box for i in indices).width


def _aligned(one: Piece, other: Piece) -> bool:
    return abs(one.box.top - other.box.top) <= ALIGNED * max(one.size, other.size)


def _bands(indices: Sequence[int], pieces: Sequence[Piece]) -> list[list[int]]:
    """Return the pieces by bands with white space between them, from top to bottom."""
    bands: list[list[int]] = []
    reach = 0.0
    for i in sorted(indices, key=lambda i: (pieces[i].box.top, pieces[i].box.left)):
        box = pieces[i].box
        if bands and box.top < reach:
            bands[-1].append(i)
            reach = max(reach, box.bottom)
        else:
            bands.append([i])
            reach = box.bottom
    return bands


def _loosely_ordered(indices: list[int], pieces: Sequence[Piece]) -> list[int]:
    """Return pieces that no white space separates: by columns that few pieces cross, else from the top."""
    gutter = _loose_gutter(indices, pieces)
    if gutter is None:
        return _top_down(indices, pieces)
    return [i for column in _split(indices, [gutter], pieces) for i in _ordered(column, pieces)]


def _loose_gutter(indices: Sequence[int], pieces: Sequence[Piece]) -> float | None:
    boxes = [pieces[i].box for i in indices]
    total = sum(box.area for box in boxes)
    best: tuple[float, float] | None = None
    for x in sorted({box.right + MIN_GUTTER / 2 for box in boxes}):
        bridges = sum(box.area for box in boxes if box.left < x < box.right)
        left = sum(box.area for box in boxes if box.middle_x < x)
        if bridges <= MAX_BRIDGE * total and MIN_COLUMN * total <= left <= (1 - MIN_COLUMN) * total:
            best = min(best or (bridges, x), (bridges, x))
    return best[1] if best else None


def _top_down(indices: Sequence[int], pieces: Sequence[Piece]) -> list[int]:
    """Return upper pieces before those below them, and otherwise the leftmost first."""
    rest = sorted(indices, key=lambda i: (pieces[i].box.top, pieces[i].box.left))
    if len(rest) > MANY:
        return rest
    order: list[int] = []
    while rest:
        free = [
            i for i in rest if not any(_is_above(pieces[one].box, pieces[i].box) for one in rest if one != i)
        ]
        chosen = min(free, key=lambda i: (pieces[i].box.left, pieces[i].box.top)) if free else rest[0]
        order.append(chosen)
        rest.remove(chosen)
    return order


def _is_above(one: Box, other: Box) -> bool:
    return one.shared_width(other) > 0 and one.middle_y < other.middle_y
