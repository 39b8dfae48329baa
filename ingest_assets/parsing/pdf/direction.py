"""Text that runs from right to left, and how its pieces follow each other on a line."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeVar

_RIGHT_TO_LEFT = {"R", "AL"}

Piece = TypeVar("Piece")


def leaning(text: str) -> int:
    """Letters that run from right to left minus letters that run from left to right."""
    count = 0
    for letter in text:
        if letter.isascii():
            count -= letter.isalpha()
        else:
            direction = unicodedata.bidirectional(letter)
            count += (direction in _RIGHT_TO_LEFT) - (direction == "L")
    return count


def is_right_to_left(text: str) -> bool:
    """Whether most of its letters run from right to left."""
    return leaning(text) > 0


def in_reading_order(
    pieces: Sequence[Piece],
    left: Callable[[Piece], float],
    text: Callable[[Piece], str],
    *,
    in_right_to_left: bool = False,
) -> list[Piece]:
    """The pieces of one line as they are read.

    A line of a right-to-left script is read from its right end; what runs from left to right inside it
    (names, numbers) keeps its own order. In a text of such a script, one word of it makes the line one.
    """
    ordered = sorted(pieces, key=left)
    has_own = in_right_to_left and any(is_right_to_left(text(piece)) for piece in ordered)
    if not has_own and not is_right_to_left("".join(map(text, ordered))):
        return ordered
    found: list[Piece] = []
    foreign: list[Piece] = []
    for piece in reversed(ordered):
        if is_right_to_left(text(piece)) or not any(letter.isalnum() for letter in text(piece)):
            found += reversed(foreign)
            foreign = []
            found.append(piece)
        else:
            foreign.append(piece)
    return [*found, *reversed(foreign)]
