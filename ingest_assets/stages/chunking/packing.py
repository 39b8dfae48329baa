"""Tables that do not fit, packed into chunks: whole rows or whole values, as many as there is room for."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ingest_assets.stages.chunking.room import Room, Unit
from ingest_assets.stages.chunking.wide import cells_of, cut_columns, cut_row

END_OF_VALUE = ". "
_HEADER_AND_RULE = re.compile(r"^\|.*\n\|(?: - \|)+$", re.MULTILINE)


class MarkdownTable(NamedTuple):
    """A table by rows; `before` is its caption, with the empty line below it."""

    before: str
    header: str
    rows: Sequence[str]


def read_markdown(text: str) -> MarkdownTable | None:
    """The parts of a table written by rows; nothing where it has no rows."""
    found = _HEADER_AND_RULE.search(text)
    rows = text[found.end() + 1 :] if found else ""
    return (
        MarkdownTable(text[: found.start()], found.group() + "\n", rows.split("\n"))
        if found and rows
        else None
    )


def by_rows(table: MarkdownTable, room: Room) -> list[str]:
    """Whole rows below the header; only a row that does not fit below it is cut.

    The parts of such a row have the header too; where that takes more than half of the room, they have whole
    columns, each below its own name.
    """
    return _packed(table.before, _rows(table, room), "\n", room)


def by_values(before: str, values: Sequence[str], room: Room) -> list[str]:
    """Whole values; only one that does not fit is cut."""
    *ended, last = values
    texts = [*(value + END_OF_VALUE.rstrip() for value in ended), last]
    units = (Unit("", part) for text in texts for part in _whole_or_cut(text, room))
    return _packed(before, units, " ", room)


def _rows(table: MarkdownTable, room: Room) -> Iterator[Unit]:
    names, is_low = cells_of(table.header.partition("\n")[0]), room.has_half_left_below(table.header)
    for fits, together in groupby(table.rows, key=lambda row: room.fits(table.header + row)):
        if fits:
            yield from (Unit(table.header, row) for row in together)
            continue
        rows = list(map(cells_of, together))
        if is_low or any(len(cells) != len(names) for cells in rows):
            yield from (unit for cells in rows for unit in cut_row(cells, table.header, room))
        else:
            yield from cut_columns(names, rows, room)


def _whole_or_cut(text: str, room: Room) -> list[str]:
    return [text] if room.fits(text) else room.cut_to_fit(text)


def _packed(before: str, units: Iterator[Unit], glue: str, room: Room) -> list[str]:
    """What stands before the table is in the first chunk, or in chunks of its own where that is too long.

    Units are taken as they come, so that the words of each are counted while they are still remembered.
    """
    last = next(units, None)
    if last is None:
        return room.cut_to_fit(before.strip())
    first = "".join(last)
    chunks = [before + first] if room.fits(before + first) else [*room.cut_to_fit(before.strip()), first]
    for unit in units:
        longer = chunks[-1] + glue + unit.text
        if unit.top == last.top and room.fits(longer):
            chunks[-1] = longer
        else:
            chunks.append("".join(unit))
        last = unit
    return chunks
