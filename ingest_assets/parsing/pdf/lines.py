"""The lines of a page with their text and style, from the parser's pieces of text."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.direction import right_to_left_balance, sort_line
from ingest_assets.parsing.pdf.fonts import font_style
from ingest_assets.parsing.pdf.markers import BULLET

MIN_ROW_SHARE = 0.6  # of the lower piece's height, for two pieces to be on one line
SAME_SIZE = 0.15  # share by which heights of one font's words may differ
MIN_SPACE = 0.1  # of the text's height; words are further apart


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of text in one font: a word, or a line from a parser or OCR."""

    box: Box
    text: str
    font: str = ""
    heavy: bool = False  # drawn with an outline, which some programs use for bold
    turn: int = 0  # angle of the text: 0, 90, 180 or 270 degrees counter-clockwise


@dataclass(frozen=True, slots=True)
class Style:
    """The shares of a line's letters that are bold, italic, monospaced or in a font for formulas."""

    bold: float = 0.0
    italic: float = 0.0
    mono: float = 0.0
    math: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text. Its box is as tall as its main font: superscripts and subscripts do not count."""

    box: Box
    text: str
    size: float = 0.0  # height of the main font
    font: str = ""
    style: Style = field(default_factory=Style)
    first: Style = field(default_factory=Style)  # of the first word
    last: Style = field(default_factory=Style)  # of the last word
    first_width: float = 0.0  # of the first word
    order: int = 0  # position in the parser's output


def styled_line(piece: Word, words: Sequence[Word], order: int) -> Line:
    """Return a piece of text as a line, with the style of the words in it."""
    inner = sorted(words, key=lambda word: word.box.left) or [piece]
    text = _with_plain_bullet(piece.text, inner[0])
    font, size = _main_font(inner)
    boxes = [word.box for word in inner if word.font == font]
    main = [box for box in boxes if abs(box.height - size) < SAME_SIZE * size]
    upright = bounding_box(main or [piece.box])
    return Line(
        box=Box(piece.box.left, upright.top, piece.box.right, upright.bottom),
        text=text,
        size=size,
        font=font,
        style=_style(inner),
        first=_style(inner[:1]),
        last=_style(inner[-1:]),
        first_width=inner[0].box.width if len(inner) > 1 or " " not in piece.text else _first_width(piece),
        order=order,
    )


def _with_plain_bullet(text: str, first: Word) -> str:
    """Replace the first character by a bullet where a symbol font uses it as one."""
    start = text.lstrip()[:1]
    is_odd = "\ue000" <= start <= "\uf8ff" or (font_style(first.font).symbol and len(first.text.strip()) == 1)
    rest = text.lstrip()[1:]
    return f"{BULLET}{rest}" if is_odd and rest[:1].isspace() else text


def _first_width(piece: Word) -> float:
    """Estimate the width of a piece's first word by its share of the letters."""
    return piece.box.width * len(piece.text.split(" ", 1)[0]) / max(1, len(piece.text))


def _main_font(words: Sequence[Word]) -> tuple[str, float]:
    """Return the font of most letters, the first one at a tie, and its median height."""
    letters: Counter[str] = Counter()
    for word in words:
        letters[word.font] += len(word.text)
    font = max(letters, key=lambda key: letters[key])
    heights = sorted(word.box.height for word in words if word.font == font for _ in word.text)
    return font, heights[len(heights) // 2] if heights else words[0].box.height


def _style(words: Sequence[Word]) -> Style:
    total = sum(len(word.text) for word in words) or 1
    styles = [(len(word.text), font_style(word.font), word.heavy) for word in words]
    return Style(
        bold=sum(count for count, style, heavy in styles if style.bold or heavy) / total,
        italic=sum(count for count, style, _ in styles if style.italic) / total,
        mono=sum(count for count, style, _ in styles if style.mono) / total,
        math=sum(count for count, style, _ in styles if style.math) / total,
    )


class WordIndex:
    """Finds the words inside a box by binary search."""

    def __init__(self, words: Iterable[Word]) -> None:
        self._words = sorted(
            (word for word in words if word.text.strip()), key=lambda word: word.box.middle_y
        )
        self._middles = [word.box.middle_y for word in self._words]

    def within(self, box: Box, slack: float = 0.5) -> list[Word]:
        """Return the words whose centre is in the box, from top to bottom."""
        first = bisect_left(self._middles, box.top - slack)
        end = bisect_right(self._middles, box.bottom + slack)
        left, right = box.left - slack, box.right + slack
        return [word for word in self._words[first:end] if left <= word.box.middle_x <= right]


def is_beside(one: Box, other: Box) -> bool:
    """True if two boxes are on the same line of a page."""
    return one.shared_height(other) > MIN_ROW_SHARE * min(one.height, other.height)


def join_pieces(pieces: Sequence[Line], *, in_right_to_left: bool = False) -> Line:
    """Return one line from pieces that are side by side, in reading order."""
    if len(pieces) == 1:
        return pieces[0]
    ordered = sort_line(
        pieces, lambda piece: piece.box.left, lambda piece: piece.text, in_right_to_left=in_right_to_left
    )
    main = max(ordered, key=lambda piece: len(piece.text))
    box = bounding_box(piece.box for piece in ordered)
    return Line(
        box=Box(box.left, main.box.top, box.right, main.box.bottom),
        text=_text(ordered),
        size=main.size,
        font=main.font,
        style=_mean_style(ordered),
        first=ordered[0].first,
        last=ordered[-1].last,
        first_width=ordered[0].first_width,
        order=min(piece.order for piece in ordered),
    )


def _text(ordered: Sequence[Line]) -> str:
    text = ordered[0].text.strip()
    for last, piece in pairwise(ordered):
        text += _space(last, piece) + piece.text.strip()
    return text


def _space(last: Line, piece: Line) -> str:
    """Return a space if the pieces are separate words; at a change of direction they always are."""
    gap = -last.box.shared_width(piece.box)
    turns = right_to_left_balance(last.text) * right_to_left_balance(piece.text) < 0
    return " " if turns or gap > MIN_SPACE * min(last.box.height, piece.box.height) else ""


def _mean_style(pieces: Sequence[Line]) -> Style:
    total = sum(len(piece.text) for piece in pieces) or 1

    def share(name: str) -> float:
        return float(sum(getattr(piece.style, name) * len(piece.text) for piece in pieces) / total)

    return Style(share("bold"), share("italic"), share("mono"), share("math"))


def box_rows(words: Sequence[Box]) -> list[list[Box]]:
    """Return words by rows, top to bottom, each from left to right."""
    rows: list[list[Box]] = []
    for word in sorted(words, key=lambda word: (word.middle_y, word.left)):
        if rows and is_beside(rows[-1][0], word):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [sorted(row, key=lambda word: word.left) for row in rows]
