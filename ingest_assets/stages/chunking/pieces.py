"""A chunk while it is made."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DELIMITER = "\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, the headings above it and the items it is made of. `repeated` is what it begins with that the
    chunk before it ended with."""

    text: str
    headings: tuple[str, ...]
    items: Sequence[Any]
    repeated: str = ""

    @property
    def contextualized(self) -> str:
        """What is embedded."""
        return DELIMITER.join((*self.headings, self.repeated + self.text))


def is_table(piece: Piece) -> bool:
    """True when it holds nothing but tables."""
    return all(map(is_table_item, piece.items))


def is_table_item(item: Any) -> bool:
    """By its reference: what Docling copied lost its kind."""
    return bool(item.self_ref.startswith("#/tables/"))


def each_once(items: Sequence[Any]) -> list[Any]:
    """The items in order, each where it first stands."""
    found: dict[str, Any] = {}
    for item in items:
        found.setdefault(item.self_ref, item)
    return list(found.values())


def is_visible(text: str) -> bool:
    """False when there is nothing to see: blanks, control and format characters."""
    return any(
        not character.isspace() and (character.isprintable() or _may_show(character)) for character in text
    )


def _may_show(character: str) -> bool:
    """Private and new characters, of which only a font knows."""
    return unicodedata.category(character) in {"Co", "Cn"}
