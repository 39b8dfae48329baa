"""Font sizes from word boxes. Some boxes are as tall as the font, others only as tall as the ink.

With the latter, the box of `on` is half as tall as that of `only` at the same font size; the shapes of the
letters then give the size. A few fonts declare a wrong height: there the width of letters gives it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.fonts import font_style
from ingest_assets.parsing.pdf.lines import Word

_DEEP = set("gjpqyQçşţğ,;()[]{}|/@§µ$ß")
_LOW = set("acemnorsuvwxz")
_TALL_HEIGHT, _LOW_HEIGHT, _DEPTH = 0.68, 0.46, 0.22  # of the font's size, above and below the line
MAX_RATIO_OF_LOW = 0.72  # height of words like `on` divided by that of words like `only`
_PLAIN = re.compile(r"[A-Z]?[a-z]{3,}|[\u05d0-\u05ea]{3,}")
USUAL_WIDTH = 0.5  # of a small letter, in heights of its font's box
MIN_FACTOR = 0.8  # a narrower font has a wrong height
MAX_FACTOR = 1.5  # a wider font too
MIN_WORDS = 2
MIN_PLAIN = 0.4  # share of a font's words that are in letters of known width


def normalize_heights(words: Iterable[Word]) -> list[Word]:
    """Return the words, each with a box as tall as its font."""
    visible = [word for word in words if word.text.strip()]
    ink_boxes = _ink_box_fonts(visible)
    full = [_full_height(word) if word.font in ink_boxes else word for word in visible]
    factors = _height_factors(full)
    return [_scaled(word, factors[word.font]) if word.font in factors else word for word in full]


def _ink_box_fonts(words: Sequence[Word]) -> set[str]:
    low: dict[str, list[float]] = {}
    full: dict[str, list[float]] = {}
    for word in words:
        letters = set(word.text)
        if letters <= _LOW:
            low.setdefault(word.font, []).append(word.box.height)
        elif letters & _DEEP and any(is_tall(letter) for letter in letters):
            full.setdefault(word.font, []).append(word.box.height)
    return {
        font
        for font, heights in low.items()
        if font in full and median(heights) < MAX_RATIO_OF_LOW * median(full[font])
    }


def is_tall(letter: str) -> bool:
    """True if a letter is taller than small letters such as `x`."""
    if letter.isupper() or letter.isdigit():
        return True
    return letter.isalpha() and letter not in _LOW and letter not in "gjpqy"


def _full_height(word: Word) -> Word:
    letters = set(word.text)
    above = _LOW_HEIGHT if letters & _LOW and not any(map(is_tall, letters)) else _TALL_HEIGHT
    below = _DEPTH if letters & _DEEP else 0.0
    size = word.box.height / (above + below)
    line = word.box.bottom - below * size
    box = Box(word.box.left, line - _TALL_HEIGHT * size, word.box.right, line + _DEPTH * size)
    return replace(word, box=box)


def _height_factors(words: Sequence[Word]) -> dict[str, float]:
    """Return the factor for the box heights of each font that needs a correction."""
    widths: dict[str, list[float]] = {}
    counts: Counter[str] = Counter()
    for word in words:
        counts[word.font] += word.text.isalpha()
        if _PLAIN.fullmatch(word.text) and word.box.height > 0:
            widths.setdefault(word.font, []).append(word.box.width / len(word.text) / word.box.height)
    factors = {
        font: median(ratios) / USUAL_WIDTH
        for font, ratios in widths.items()
        if len(ratios) >= max(MIN_WORDS, MIN_PLAIN * counts[font])
    }
    return {
        font: factor
        for font, factor in factors.items()
        if factor < MIN_FACTOR or (factor > MAX_FACTOR and not font_style(font).mono)
    }


def _scaled(word: Word, factor: float) -> Word:
    if factor > 1:  # extend the box above the line
        height = word.box.height * factor * (_TALL_HEIGHT + _DEPTH)
        foot = word.box.bottom + _DEPTH / 2 * height
        return replace(word, box=Box(word.box.left, foot - height, word.box.right, foot))
    half = word.box.height * factor / 2
    box = Box(word.box.left, word.box.middle_y - half, word.box.right, word.box.middle_y + half)
    return replace(word, box=box)
