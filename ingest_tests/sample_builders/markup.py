"""A small subset of Markdown, read into blocks that each builder draws in its own format.

Blocks are separated by blank lines: `#` title, `##` heading, `###` subheading, `- ` bullets (two spaces
deeper for a sub-bullet), `1. ` numbers, `|` table, `> ` note, `Caption: ` and `Figure: ` captions; anything
else is a paragraph.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

PROSE = Path(__file__).parent / "prose"
BUILT_AT = datetime(2024, 11, 30, 12, 0, tzinfo=UTC)
AUTHOR = "Quayside Beekeepers' Association"

Kind = Literal[
    "title", "heading", "subheading", "paragraph", "note", "caption", "figure", "bullets", "numbers", "table"
]

PREFIXES: dict[str, Kind] = {
    "# ": "title",
    "## ": "heading",
    "### ": "subheading",
    "> ": "note",
    "Caption: ": "caption",
    "Figure: ": "figure",
}


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a list and how deep it stands, from 0."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """One paragraph, heading, list or table; only the field of its kind is filled."""

    kind: Kind
    text: str = ""
    items: tuple[Item, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def read_blocks(name: str) -> list[Block]:
    """The blocks of `prose/<name>`, in order."""
    source = (PROSE / name).read_text(encoding="utf-8")
    return [parse_block(part) for part in source.strip().split("\n\n")]


def parse_block(source: str) -> Block:
    """One block; its kind is decided by how the first line starts."""
    if source.startswith("|"):
        return Block("table", rows=parse_rows(source))
    if source.startswith("- "):
        return Block("bullets", items=tuple(parse_item(line) for line in source.splitlines()))
    if source.startswith("1. "):
        return Block("numbers", items=tuple(parse_item(line) for line in source.splitlines()))
    text = " ".join(source.split())
    for prefix, kind in PREFIXES.items():
        if text.startswith(prefix):
            return Block(kind, text=text.removeprefix(prefix))
    return Block("paragraph", text=text)


def parse_item(line: str) -> Item:
    """A list line without its marker; two leading spaces are one level."""
    indent = len(line) - len(line.lstrip())
    return Item(level=indent // 2, text=re.sub(r"^(-|\d+\.) ", "", line.strip()))


def parse_rows(source: str) -> tuple[tuple[str, ...], ...]:
    """The cells of a pipe table, without the rule under its header."""
    lines = [line for line in source.splitlines() if not line.startswith("|---")]
    return tuple(tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines)


def split_at(kind: Kind, blocks: list[Block]) -> list[list[Block]]:
    """Groups that each start at a block of this kind; what stands before the first is a group of its own."""
    groups: list[list[Block]] = []
    for block in blocks:
        if block.kind == kind or not groups:
            groups.append([])
        groups[-1].append(block)
    return groups
