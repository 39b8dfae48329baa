"""Garbled text layers: fonts whose character codes have no meaning."""

import re
import unicodedata
from collections.abc import Iterable

MAX_BAD = 0.3  # share of invalid characters
MIN_VOWELS = 0.15  # share of vowels among Latin letters; less in no language
ENOUGH_LETTERS = 200
_BAD_CATEGORIES = {"Cc", "Cn", "Co", "Cs"}
_UNNAMED = re.compile(r"GLYPH<[^>]*>|\(cid:\d+\)|/[gG]\d+|\ba\d{2,3}(?=\W|a\d|$)")
_UNUSUAL = re.compile(r"[^\x21-\x7e\u00a1-\u02ff]")  # all but characters of western languages
_LATIN = re.compile(r"[A-Za-z]")
_VOWELS = "aeiouyAEIOUY"


def is_garbled(texts: Iterable[str]) -> bool:
    """True if too much of a page's text is unreadable, so that OCR gives a better result."""
    text = "".join("".join(one.split()) for one in texts)
    if not text:
        return False
    named, unnamed = _UNNAMED.subn("", text)
    bad = unnamed + sum(map(_is_bad, _UNUSUAL.findall(named)))
    return bad > MAX_BAD * (len(named) + unnamed) or _has_no_vowels(named)


def _is_bad(letter: str) -> bool:
    is_dingbat = "\u2700" <= letter <= "\u27bf"
    return letter == "\ufffd" or is_dingbat or unicodedata.category(letter) in _BAD_CATEGORIES


def _has_no_vowels(text: str) -> bool:
    letters = _LATIN.findall(text)
    if len(letters) < ENOUGH_LETTERS or len(letters) < len(text) / 3:
        return False
    return sum(map(letters.count, _VOWELS)) < MIN_VOWELS * len(letters)
