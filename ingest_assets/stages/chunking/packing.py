"""Tables that do not fit, packed into chunks: whole rows or whole values, as many as there is room for."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ingest_assets.stages.chunking.counting import TokenCounter

END_OF_VALUE = ". "
_HEADER_AND_RULE = re.compile(r"^.*\n\|(?: - \|)+$", re.MULTILINE)


class Unit(NamedTuple):
    """A text that is not cut any further, and what has to stand at the top of its chunk."""

    top: str
    text: str


class MarkdownTable(NamedTuple):
    """A table by rows; `before` is its caption, with the empty line below it."""

    before: str
    header: str
    rows: Sequence[str]


@dataclass(frozen=True, slots=True)
class Room:
    """What a chunk holds, and how a text that is too long for it is cut."""

    most_tokens: int
    count: TokenCounter
    cut: Callable[[str, int], list[str]]

    def fits(self, text: str) -> bool:
        return self.count(text) <= self.most_tokens

    def has_half_left_below(self, text: str) -> bool:
        return 2 * self.count(text) <= self.most_tokens

    def cut_to_fit(self, text: str, below: str = "") -> list[str]:
        """The text's parts, each with room for what stands above it."""
        return self.cut(text, self.most_tokens - self.count(below))


def read_markdown(text: str) -> MarkdownTable | None:
    """The parts of a table written by rows; nothing where it has no rows."""
    found = _HEADER_AND_RULE.search(text)
    rows = text[found.end() + 1 :] if found else ""
    return (
        MarkdownTable(text[: found.start()], found.group() + "\n", rows.split("\n"))
        if found and rows
        else None
    )


def is_too_wide(table: MarkdownTable, room: Room) -> bool:
    """True when the header leaves room for no row, and for little of one."""
    return not room.has_half_left_below(table.header) and not any(
        room.fits(table.header + row) for row in table.rows
    )


def by_rows(table: MarkdownTable, room: Room) -> list[str]:
    """Whole rows below the header; only a row that does not fit below it is cut.

    The parts of such a row have the header too, unless it takes more than half of the room.
    """
    return _packed(table.before, list(_rows(table, room)), "\n", room)


def by_values(before: str, values: Sequence[str], room: Room) -> list[str]:
    """Whole values; only one that does not fit is cut."""
    *ended, last = values
    texts = [*(value + END_OF_VALUE.rstrip() for value in ended), last]
    units = [Unit("", part) for text in texts for part in _whole_or_cut(text, room)]
    return _packed(before, units, " ", room)


def _rows(table: MarkdownTable, room: Room) -> Iterator[Unit]:
    top_of_parts = table.header if room.has_half_left_below(table.header) else ""
    for row in table.rows:
        if room.fits(table.header + row):
            yield Unit(table.header, row)
        else:
            yield from (Unit(top_of_parts, part) for part in room.cut_to_fit(row, below=top_of_parts))


def _whole_or_cut(text: str, room: Room) -> list[str]:
    return [text] if room.fits(text) else room.cut_to_fit(text)


def _packed(before: str, units: Sequence[Unit], glue: str, room: Room) -> list[str]:
    """What stands before the table is in the first chunk, or in chunks of its own where that is too long."""
    first = "".join(units[0])
    chunks = [before + first] if room.fits(before + first) else [*room.cut_to_fit(before.strip()), first]
    for last, unit in pairwise(units):
        longer = chunks[-1] + glue + unit.text
        if unit.top == last.top and room.fits(longer):
            chunks[-1] = longer
        else:
            chunks.append("".join(unit))
    return chunks
