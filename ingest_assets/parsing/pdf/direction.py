"""Right-to-left text, and the reading order of the pieces of a line."""

import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeVar

_RIGHT_TO_LEFT = {"R", "AL"}

Piece = TypeVar("Piece")


def right_to_left_balance(text: str) -> int:
    """Return the number of right-to-left letters minus that of left-to-right letters."""
    count = 0
    for letter in text:
        if letter.isascii():
            count -= letter.isalpha()
        else:
            direction = unicodedata.bidirectional(letter)
            count += (direction in _RIGHT_TO_LEFT) - (direction == "L")
    return count


def is_right_to_left(text: str) -> bool:
    """True if most letters run from right to left."""
    return right_to_left_balance(text) > 0


def sort_line(
    pieces: Sequence[Piece],
    left: Callable[[Piece], float],
    text: Callable[[Piece], str],
    *,
    in_right_to_left: bool = False,
) -> list[Piece]:
    """Return the pieces of one line in reading order.

    A line of a right-to-left script is read from the right; left-to-right parts in it keep their order.
    In a right-to-left text, a single word of its script makes a line right-to-left.
    """
    ordered = sorted(pieces, key=left)
    has_script = in_right_to_left and any(is_right_to_left(text(piece)) for piece in ordered)
    if not has_script and not is_right_to_left("".join(map(text, ordered))):
        return ordered
    reading: list[Piece] = []
    left_to_right: list[Piece] = []
    for piece in reversed(ordered):
        if is_right_to_left(text(piece)) or not any(letter.isalnum() for letter in text(piece)):
            reading += reversed(left_to_right)
            left_to_right = []
            reading.append(piece)
        else:
            left_to_right.append(piece)
    return [*reading, *reversed(left_to_right)]
