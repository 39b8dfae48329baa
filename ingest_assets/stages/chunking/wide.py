"""Rows that do not fit below their header: cut between cells, and inside one only where it is too long."""

from collections.abc import Iterator, Sequence
from operator import add

from ingest_assets.stages.chunking.room import Room, Unit

_SHORT = 4  # so many times the cell that names a row has to fit into a chunk, to stand in each of its parts
_BORDER = " | "


def line_of(cells: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {_BORDER.join(cells)} |"


def cells_of(line: str) -> list[str]:
    """The other way round; no cell holds a border."""
    return line[2:-2].split(_BORDER)


def cut_columns(names: Sequence[str], rows: Sequence[Sequence[str]], room: Room) -> Iterator[Unit]:
    """Whole columns, as many as fit below their names; the first again in each part where it is short."""
    for columns in _groups(names, rows, room):
        header = _header([names[at] for at in columns])
        units = [unit for row in rows for unit in _placed([row[at] for at in columns], header, room)]
        if not any(unit.top for unit in units):
            yield from (Unit("", part) for part in room.cut_to_fit(header.partition("\n")[0]))
        yield from units


def _placed(cells: Sequence[str], header: str, room: Room) -> Iterator[Unit]:
    line = line_of(cells)
    return iter([Unit(header, line)]) if room.fits(header + line) else cut_row(cells, header, room)


def _header(names: Sequence[str]) -> str:
    return f"{line_of(names)}\n{line_of(['-'] * len(names))}\n"


def _groups(names: Sequence[str], rows: Sequence[Sequence[str]], room: Room) -> Iterator[list[int]]:
    """Columns that stand together: their names take at most half of the room, and every row fits below.

    Each cell is counted once, with its border: tokens of a line are those of its cells, or close to it. One
    that fits below no name is left out of account, as it is cut wherever it stands.
    """
    border = room.count("|")
    left = room.most_tokens - 3 * border
    heads = [width + room.count(" - |") for width in _widths(names, room)]
    widths = list(zip(*(_widths(row, room) for row in rows), strict=True))
    bodies = [
        [0 if head + cell > left else cell for cell in cells]
        for head, cells in zip(heads, widths, strict=True)
    ]
    is_named = _SHORT * (heads[0] + max(widths[0])) <= room.most_tokens

    def longest(start: Sequence[int], begin: int) -> list[int]:
        found, head, body = list(start), 0, [0] * len(rows)
        for at in [*start, *range(begin, len(names))]:
            head += heads[at]
            body = list(map(add, body, bodies[at]))
            if 2 * (head + 2 * border) > room.most_tokens or head + max(body) > left:
                break
            if at >= begin:
                found.append(at)
        return found if len(found) > len(start) else []

    at = 0
    while at < len(names):
        group = (at and is_named and longest([0], at)) or longest([], at) or [at]
        yield group
        at = group[-1] + 1


def _widths(cells: Sequence[str], room: Room) -> list[int]:
    """Tokens of each cell; of all of them first, as a counter that looks at words asks for many in one go."""
    room.count(line_of(cells))
    return [room.count(f" {cell} |") for cell in cells]


def cut_row(cells: Sequence[str], header: str, room: Room) -> Iterator[Unit]:
    """A row in parts: rows with some of the cells in their places, and with the first where it is short.

    Only a cell that does not fit beside it is cut. A header of more than half of the room is left out.
    """
    frame = _Frame(header if room.has_half_left_below(header) else "", cells, room)
    held = list(frame.empty)
    for at, cell in enumerate(cells):
        if not cell or frame.empty[at]:
            continue
        if not frame.holds_words_of(cell):
            yield from frame.ended(held)
            held = list(frame.empty)
            yield from (Unit("", part) for part in room.cut_to_fit(cell))
            continue
        for part in frame.parts(cell, at):
            if held[at] or not room.fits(frame.top + frame.line(_with(held, at, part))):
                yield from frame.ended(held)
                held = list(frame.empty)
            held[at] = part
    yield from frame.ended(held)


class _Frame:
    """What every part of a row has: the header, and the cell that names the row."""

    def __init__(self, top: str, cells: Sequence[str], room: Room) -> None:
        is_short = len(cells) > 1 and _SHORT * room.count(cells[0]) <= room.most_tokens
        self.top = top
        self.empty = [cells[0] if is_short else "", *[""] * (len(cells) - 1)]
        self._room = room
        self._left = room.left_below(top + self.line(self.empty))
        self._is_named = not self.empty[0]

    def line(self, cells: Sequence[str]) -> str:
        """Places tell nothing where there is no header."""
        return line_of(cells if self.top else list(filter(None, cells)))

    def holds_words_of(self, cell: str) -> bool:
        """False when a word would be torn that fits into a chunk by itself."""
        return all(self._room.count(word) <= self._left for word in set(cell.split()))

    def parts(self, cell: str, at: int) -> list[str]:
        """All of a cell where it fits with the frame."""
        whole = self.line(_with(self.empty, at, cell))
        return [cell] if self._room.fits(self.top + whole) else self._room.cut(cell, self._left)

    def ended(self, cells: Sequence[str]) -> Iterator[Unit]:
        """What is held; of the frame alone only the row's name, unless some part has it already."""
        if cells != self.empty:
            yield Unit(self.top, self.line(cells))
        elif not self._is_named:
            yield Unit("", self.empty[0])
        self._is_named = True


def _with(cells: Sequence[str], at: int, text: str) -> list[str]:
    return [*cells[:at], text, *cells[at + 1 :]]
