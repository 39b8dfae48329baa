"""Texts made equal where they say the same, and counted by what they say."""

import re
import unicodedata

import regex

from ingest_assets.model.identity import sha256_text

# Control characters that are whitespace too, such as tab, part words and count as such.
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_ASCII_OTHERS = bytes(code for code in range(128) if not chr(code).isalnum())
# Scripts that put no spaces between words.
_SCRIPTS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_UNSPACED = regex.compile(f"[{_SCRIPTS}]")
# Marks belong to words: the vowels of Devanagari are marks.
_WORDS = regex.compile(rf"(?V1)[{_SCRIPTS}]|[[\p{{L}}\p{{M}}\p{{N}}]--[{_SCRIPTS}]]+")


def normal_text(text: str) -> str:
    """Without control characters, in lower case and NFC, with single spaces."""
    spaced = " ".join(text.split())
    if not spaced.isprintable():  # what is printable holds no control character, and is found out quickly
        spaced = " ".join(_CONTROLS.sub("", spaced).split())
    return unicodedata.normalize("NFC", spaced.lower())


def plain(text: str) -> str:
    """As the phrases of pages are written down here."""
    return normal_text(text).replace("’", "'")


def as_label(plain_text: str) -> str:
    """As labels are written down: without what stands around a word on a button or in a form."""
    return plain_text.strip(" :：*?!.…›»«‹>→|·•-–—()[]")


def text_hash(text: str) -> str:
    """Equal for texts that differ in case, whitespace and control characters only."""
    return sha256_text(normal_text(text))


def meaningful_chars(text: str) -> int:
    """Letters and digits."""
    if text.isascii():
        return len(text.encode("ascii").translate(None, _ASCII_OTHERS))
    return sum(map(str.isalnum, text))


def words_of(text: str) -> list[str]:
    """Words in order; of scripts without spaces, single characters."""
    return _WORDS.findall(text)


def different_words(text: str) -> int:
    """Words of two characters or more, each counted once; without spaces, three characters are two words."""
    words = set(words_of(text.lower()))
    characters = sum(bool(_UNSPACED.match(word)) for word in words)
    return sum(len(word) > 1 for word in words) + characters * 2 // 3


def word_count(text: str) -> int:
    """About how many words a text has, quickly: what spaces part, and pairs of characters where none do."""
    spaced = len(text.split())
    return spaced if text.isascii() else spaced + len(_UNSPACED.findall(text)) // 2


def samples(text: str, parts: int, part_chars: int) -> list[str]:
    """All of a short text; of a long one parts from its start to its end, the same every time."""
    if len(text) <= parts * part_chars:
        return [text]
    step = (len(text) - part_chars) // (parts - 1)
    return [text[at * step : at * step + part_chars] for at in range(parts)]


def sampled(text: str, parts: int, part_chars: int) -> str:
    """The samples as one text."""
    return " ".join(samples(text, parts, part_chars))
