"""Shares of garbled text: wrong encodings, glyph numbers, and letters that form no words."""

import functools
import re
import unicodedata
from itertools import pairwise

from ingest_assets.stages.admission.document_text import meaningful_chars
from ingest_assets.stages.admission.facts import RUNNING_WORDS, Facts

# The bytes 0x80 to 0xBF of UTF-8, decoded as Windows-1252 or Latin-1, and as Windows-1251.
_TAIL = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_TAIL_1251 = "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—™љ›њќћџ\xa0ЎўЈ¤Ґ¦§Ё©Є«¬\xad®Ї°±Ііґµ¶·ё№є»јЅѕї"
MOJIBAKE = re.compile(
    # UTF-8 decoded as Windows-1252 or Latin-1
    rf"[\xc2-\xdf][{_TAIL}]|[\xe0-\xef][{_TAIL}]{{2}}|[\xf0-\xf4][{_TAIL}]{{3}}"
    # UTF-8 decoded as Windows-1251: every second letter is Р or С
    rf"|(?:[РС][{_TAIL_1251}]){{2,}}"
    # another eight-bit encoding decoded as Latin-1: no language has four accented letters in a row
    r"|[\xc0-\xff]{4,}"
    # the replacement character, encoded again and decoded as GBK
    r"|锟斤拷|斤拷锟"
)
# The replacement character, control characters, surrogates and private use.
CORRUPT = re.compile("[\ufffd\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ue000-\uf8ff]")
_MOJIBAKE_LEADS = frozenset([chr(code) for code in range(0xC0, 0x100)] + ["Р", "С", "锟", "斤"])

# A text with a smaller share of the characters that such sequences begin with is not searched for them.
_TOO_FEW = 0.01

GLYPHS = re.compile(
    r"\(cid:\d+\)|glyph<[^<>\s]{1,60}>|glyph\[\d+\]|/g(?:id)?\d+\b|/uni[0-9A-F]{4}\b|/[CG][0-9A-F]{2}\b"
    r"|/(?:hyphen|space|period|comma)(?:minus)?\b",
    re.IGNORECASE,
)

# Whole words: pieces of markup, addresses and encoded bytes are not counted.
_LATIN = r"[A-Za-z\xc0-\xd6\xd8-\xf6\xf8-\u024f\u1e00-\u1eff]"
_LATIN_WORDS = re.compile(rf"(?<![^\s\"'“‘«(\[-]){_LATIN}{{2,}}(?![^\s.,;:!?\"'”’»)\]-])")
_VOWELS = frozenset("aeiouyAEIOUY")
MIN_LETTERS = 200  # fewer are no sample of how letters are distributed
_LATIN_TEXT = 0.5
_RUN_TOGETHER = re.compile(r"(?<![^\s.,;:!?])[a-zA-Z\xc0-\u024f\u0370-\u052f]{45,}")
_SHORT_WORD = 30
_LONG = re.compile(r"[A-Za-z0-9+/=]{60,}")


def mojibake_share(facts: Facts) -> float:
    """Return the share of characters in sequences that only a wrong decoding produces."""
    leads = sum(facts.counts[character] for character in _MOJIBAKE_LEADS)
    if leads <= _TOO_FEW * facts.visible:
        return 0.0
    return sum(len(match[0]) for match in MOJIBAKE.finditer(facts.document.text)) / facts.visible


def glyph_share(facts: Facts) -> float:
    """Return the share of glyph numbers, each counted as the one character it replaces."""
    leads = sum(facts.counts[character] for character in "/(<[")
    if leads <= _TOO_FEW * facts.visible:
        return 0.0
    glyphs = [len(match[0]) for match in GLYPHS.finditer(facts.document.text)]
    readable = facts.visible - sum(glyphs)
    return len(glyphs) / (len(glyphs) + readable) if glyphs else 0.0


def unsayable_share(text: str) -> float:
    """Return the share of neighbouring letters in Latin words that are both vowels or both consonants.

    It is about a third in every language, below a half in code, and higher if letters are replaced by others.
    """
    words = _LATIN_WORDS.findall(text)
    letters = sum(map(len, words))
    if letters < max(MIN_LETTERS, _LATIN_TEXT * sum(map(str.isalpha, text))):
        return 0.0
    same = sum(_is_vowel(left) == _is_vowel(right) for word in words for left, right in pairwise(word))
    return same / (letters - len(words))


@functools.lru_cache(maxsize=1024)
def _is_vowel(letter: str) -> bool:
    return unicodedata.normalize("NFD", letter)[0] in _VOWELS


def single_letter_share(text: str) -> float:
    """Return the share of single Latin letters: `T h e  b r i d g e`."""
    alone = sum(len(word) == 1 and word.isascii() and word.isalpha() for word in text.split())
    return alone / max(meaningful_chars(text), MIN_LETTERS)


def run_together_share(facts: Facts) -> float:
    """Return the share of text in impossibly long words, from lost spaces or encoded bytes; 0 if there is a
    whole sentence of other words."""
    text = facts.text_outside_tables
    # Long names in code have a capital for every word.
    runs = [run for run in _RUN_TOGETHER.findall(text) if sum(map(str.isupper, run)) <= 0.08 * len(run)]
    for run in _LONG.findall(text):
        # Base64 mixes capitals and digits in a way that paths do not.
        capitals, digits = sum(map(str.isupper, run)), sum(map(str.isdigit, run))
        if 0.25 * len(run) < capitals < 0.75 * len(run) and digits > 0.05 * len(run):
            runs.append(run)
    unbroken = sum(map(len, runs))
    short_words = sum(len(word) < _SHORT_WORD and meaningful_chars(word) > 1 for word in text.split())
    return 0.0 if unbroken < MIN_LETTERS or short_words >= RUNNING_WORDS else unbroken / facts.visible
