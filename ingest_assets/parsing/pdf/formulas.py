"""Displayed formulas, joined from the many small pieces that a parser makes of them."""

import re
from collections.abc import Sequence

from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.lines import Line, is_beside

MATH = 0.3  # share of characters from fonts for formulas
MIN_VOTE = 0.6
MAX_PROSE = 2  # words of four letters or more
REACH = 0.8  # of the text's height: the maximum gap between pieces of one formula

MAX_SCRAP = 25  # letters

Piece = tuple[Box, tuple[Line, ...]]

_PROSE = re.compile(r"\b[^\W\d_]{4,}\b")
_FUNCTIONS = frozenset(
    ["arccos", "arcsin", "arctan", "cosh", "sinh", "tanh", "const", "diag", "rank", "sign", "mean"]
)
_NUMBER = re.compile(r"\([A-Z]?\.?\d{1,3}(?:[.-]\d+)?[a-z]?\)")


def is_formula(lines: Sequence[Line], vote: float) -> bool:
    """True for math fonts and hardly any word, or if the detector says so and there are few words."""
    text = " ".join(line.text for line in lines)
    if is_prose(lines):
        return False
    math = max(line.style.math for line in lines)
    return math >= MATH or (math > 0 and "=" in text) or (vote >= MIN_VOTE and "=" in text)


def is_prose(lines: Sequence[Line]) -> bool:
    """True if there are more words than in a formula."""
    return prose_words(" ".join(line.text for line in lines)) > MAX_PROSE


def prose_words(text: str) -> int:
    """Return the number of words, except names of functions."""
    return sum(word.lower() not in _FUNCTIONS for word in _PROSE.findall(text))


def is_equation_number(text: str) -> bool:
    """True if a text is only the number of a formula."""
    return bool(_NUMBER.fullmatch(text.strip()))


def merge_formula_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Join pieces of formulas that touch; their lines are sorted from top to bottom."""
    merged: list[Piece] = []
    for box, lines in pieces:
        size = max(line.size for line in lines)
        near = [piece for piece in merged if _touches(piece[0], box, REACH * size)]
        for piece in near:
            merged.remove(piece)
        joined = [*(line for piece in near for line in piece[1]), *lines]
        merged.append((bounding_box([box, *(piece[0] for piece in near)]), tuple(_in_order(joined))))
    return merged


def _touches(one: Box, other: Box, reach: float) -> bool:
    return one.shared_height(other) > -reach and one.shared_width(other) > -2 * reach


def _in_order(lines: Sequence[Line]) -> list[Line]:
    """Sort from top to bottom, with the formula's number last."""
    return sorted(lines, key=lambda line: (is_equation_number(line.text), line.box.middle_y, line.box.left))


def complete_formulas(
    formulas: Sequence[Piece], others: Sequence[tuple[Line, ...]]
) -> tuple[list[Piece], list[tuple[Line, ...]]]:
    """Add numbers and scraps of text to their formulas; return the formulas and the rest."""
    completed = [list(lines) for _, lines in formulas]
    rest: list[tuple[Line, ...]] = []
    for part in others:
        box = bounding_box(line.box for line in part)
        i = next((i for i, (formula, _) in enumerate(formulas) if _belongs(part, box, formula)), None)
        if i is None:
            rest.append(part)
        else:
            completed[i].extend(part)
    return [(bounding_box(line.box for line in lines), tuple(_in_order(lines))) for lines in completed], rest


def _belongs(part: Sequence[Line], box: Box, formula: Box) -> bool:
    text = " ".join(line.text for line in part)
    if is_equation_number(text):
        return is_beside(box, formula) or formula.top <= box.middle_y <= formula.bottom
    size = part[0].size
    near = formula.expanded(2 * size, REACH * size)
    return len(part) <= 2 and prose_words(text) == 0 and len(text) <= MAX_SCRAP and box.share_in(near) > 0.4
