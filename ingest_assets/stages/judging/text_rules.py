"""Rules about characters and words: whether there is text, and whether it is text at all."""

import functools
import re
import unicodedata
from collections import Counter
from itertools import pairwise

from ingest_assets.model.admission import StructureOptions
from ingest_assets.stages.judging.facts import RUNNING_WORDS, Facts, entropy_of, has_substance
from ingest_assets.stages.judging.finding import Finding, above, below
from ingest_assets.stages.judging.normal import meaningful_chars, sampled

# What the bytes 0x80 to 0xBF of UTF-8 become in Windows-1252 and Latin-1, and in Windows-1251.
_TAIL = "\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_TAIL_1251 = "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—™љ›њќћџ\xa0ЎўЈ¤Ґ¦§Ё©Є«¬\xad®Ї°±Ііґµ¶·ё№є»јЅѕї"
_MOJIBAKE = re.compile(
    # UTF-8 read as Windows-1252 or Latin-1
    rf"[\xc2-\xdf][{_TAIL}]|[\xe0-\xef][{_TAIL}]{{2}}|[\xf0-\xf4][{_TAIL}]{{3}}"
    # UTF-8 read as Windows-1251: every second letter is Р or С
    rf"|(?:[РС][{_TAIL_1251}]){{2,}}"
    # another eight-bit encoding read as Latin-1: no language writes four accented letters in a row
    r"|[\xc0-\xff]{4,}"
    # the replacement character, encoded again and read as GBK
    r"|锟斤拷|斤拷锟"
)
_CORRUPT = re.compile("[\ufffd\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ue000-\uf8ff]")
_MOJIBAKE_LEADS = frozenset([chr(code) for code in range(0xC0, 0x100)] + ["Р", "С", "锟", "斤"])

# Texts with fewer of the characters that a sequence begins with are not searched for it: most texts.
_TOO_FEW = 0.01

_GLYPHS = re.compile(
    r"\(cid:\d+\)|glyph<[^<>\s]{1,60}>|glyph\[\d+\]|/g(?:id)?\d+\b|/uni[0-9A-F]{4}\b|/[CG][0-9A-F]{2}\b"
    r"|/(?:hyphen|space|period|comma)(?:minus)?\b",
    re.IGNORECASE,
)

# Whole words: pieces of markup, of addresses and of encoded bytes are none.
_LATIN = r"[A-Za-z\xc0-\xd6\xd8-\xf6\xf8-\u024f\u1e00-\u1eff]"
_LATIN_WORDS = re.compile(rf"(?<![^\s\"'“‘«(\[-]){_LATIN}{{2,}}(?![^\s.,;:!?\"'”’»)\]-])")
_VOWELS = frozenset("aeiouyAEIOUY")
_FEWEST_LETTERS = 200  # fewer say nothing about how letters are spread
_LATIN_TEXT = 0.5
_FEW_DIGITS, _FEW_SYMBOLS = 0.15, 0.15
_KNOWN_LANGUAGE = 0.5
_SAMPLES, _SAMPLE_CHARS = 5, 4000
_RUN_TOGETHER = re.compile(r"(?<![^\s.,;:!?])[a-zA-Z\xc0-\u024f\u0370-\u052f]{45,}")
_SHORT_WORD = 30
_LONG = re.compile(r"[A-Za-z0-9+/=]{60,}")

_SYMBOL_ROW = re.compile(r"([^\w\s])\1{2,}")


def empty(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Not one letter or digit: a blank page, or rules and bullets only."""
    return below("empty", facts.meaningful, 1)


def corrupt_text(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Characters that were lost before anybody here could read them."""
    finding = above("corrupt_text", facts.share("corrupt"), limits.max_corrupt_share)
    return finding if finding and _clean_share(facts, _CORRUPT) < limits.min_clean_share else None


def garbled_encoding(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Mojibake: `Ð¿Ñ€Ð¸Ð²ÐµÑ‚`. Single wrong accents in a readable text are not enough."""
    finding = above("garbled_encoding", mojibake_share(facts), limits.max_mojibake_share)
    return finding if finding and _clean_share(facts, _MOJIBAKE) < limits.min_clean_share else None


def mojibake_share(facts: Facts) -> float:
    """Share of characters that stand in a sequence only a wrong decoding makes."""
    leads = sum(facts.counts[character] for character in _MOJIBAKE_LEADS)
    if leads <= _TOO_FEW * facts.visible:
        return 0.0
    return sum(len(match[0]) for match in _MOJIBAKE.finditer(facts.reading.text)) / facts.visible


def garbled_glyphs(facts: Facts, limits: StructureOptions) -> Finding | None:
    """A font without a table of characters: `/g23/g7`, `(cid:12)(cid:88)`."""
    finding = above("garbled_glyphs", glyph_share(facts), limits.max_glyph_share)
    return finding if finding and _clean_share(facts, _GLYPHS) < limits.min_clean_share else None


def glyph_share(facts: Facts) -> float:
    """Glyph numbers among all characters, each counted as the one character it stands for."""
    leads = sum(facts.counts[character] for character in "/(<[")
    if leads <= _TOO_FEW * facts.visible:
        return 0.0
    glyphs = [len(match[0]) for match in _GLYPHS.finditer(facts.reading.text)]
    readable = facts.visible - sum(glyphs)
    return len(glyphs) / (len(glyphs) + readable) if glyphs else 0.0


def _clean_share(facts: Facts, bad: re.Pattern[str]) -> float:
    """Share of the text in blocks with substance and nothing bad: say one half of a bilingual page."""
    clean = [b.text for b in facts.reading.blocks if has_substance(b) and not bad.search(b.text)]
    return sum(map(meaningful_chars, clean)) / facts.visible


def garbled_words(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Words nobody could say, letters torn apart, lines run together, encoded bytes."""
    return (
        _unsayable(facts, limits)
        or above("garbled_words", _torn_share(facts), limits.max_broken_word_share)
        or _unbroken(facts, limits)
    )


def _unsayable(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Letters that stand for others: no language, and neither part numbers nor code."""
    if facts.detected.score >= _KNOWN_LANGUAGE:
        return None
    if facts.share("digit") > _FEW_DIGITS or facts.share("symbol") > _FEW_SYMBOLS:
        return None
    return above(
        "garbled_words",
        unsayable_share(sampled(facts.loose_text, _SAMPLES, _SAMPLE_CHARS)),
        limits.max_unsayable_share,
    )


def unsayable_share(text: str) -> float:
    """Share of neighbouring letters of Latin words that are both vowels or both consonants.

    About a third in every language, below a half in code; above it once letters stand for other letters.
    """
    words = _LATIN_WORDS.findall(text)
    letters = sum(map(len, words))
    if letters < max(_FEWEST_LETTERS, _LATIN_TEXT * sum(map(str.isalpha, text))):
        return 0.0
    same = sum(_is_vowel(one) == _is_vowel(two) for word in words for one, two in pairwise(word))
    return same / (letters - len(words))


@functools.lru_cache(maxsize=1024)
def _is_vowel(letter: str) -> bool:
    return unicodedata.normalize("NFD", letter)[0] in _VOWELS


def _torn_share(facts: Facts) -> float:
    """Share of Latin letters that stand alone: `T h e  b r i d g e`."""
    sample = sampled(facts.loose_text, _SAMPLES, _SAMPLE_CHARS)
    alone = sum(len(word) == 1 and word.isascii() and word.isalpha() for word in sample.split())
    return alone / max(meaningful_chars(sample), _FEWEST_LETTERS)


def _unbroken(facts: Facts, limits: StructureOptions) -> Finding | None:
    """No whole sentence beside words longer than any language has: lost spaces, or encoded bytes."""
    text = facts.loose_text
    runs = [run for run in _RUN_TOGETHER.findall(text) if not _has_humps(run)]
    runs += [run for run in _LONG.findall(text) if _is_encoded(run)]
    unbroken = sum(map(len, runs))
    short_words = sum(len(word) < _SHORT_WORD and meaningful_chars(word) > 1 for word in text.split())
    if unbroken < _FEWEST_LETTERS or short_words >= RUNNING_WORDS:
        return None
    return above("garbled_words", unbroken / facts.visible, limits.max_broken_word_share)


def _has_humps(run: str) -> bool:
    """Long names in code have a capital for every word."""
    return sum(map(str.isupper, run)) > 0.08 * len(run)


def _is_encoded(run: str) -> bool:
    """Base64 and the like mix capitals and digits as no path does."""
    capitals, digits = sum(map(str.isupper, run)), sum(map(str.isdigit, run))
    return 0.25 * len(run) < capitals < 0.75 * len(run) and digits > 0.05 * len(run)


def entropy_too_low(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Nearly one character again and again; a table of zeros with enough headings is none."""
    if facts.entropy >= limits.min_entropy or facts.visible < _FEWEST_LETTERS:
        return None
    if facts.different_words >= limits.min_varied_words:
        return None
    return below("entropy_too_low", entropy_of(Counter(_without_rows(facts))), limits.min_entropy)


def entropy_too_high(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Characters from everywhere, as bytes give that were no text."""
    return above("entropy_too_high", facts.entropy, limits.max_entropy)


def too_many_symbols(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Drawings of characters."""
    if facts.share("symbol") <= limits.max_symbol_share or facts.visible < _FEWEST_LETTERS:
        return None
    if facts.different_words >= limits.min_varied_words:
        return None
    words = facts.visible - facts.kinds["symbol"]
    return above("too_many_symbols", 1 - words / len(_without_rows(facts)), limits.max_symbol_share)


def _without_rows(facts: Facts) -> str:
    """The visible text; a dotted line of a table of contents is one dot."""
    return "".join(_SYMBOL_ROW.sub(r"\1", facts.reading.text).split())


def too_many_digits(facts: Facts, limits: StructureOptions) -> Finding | None:
    """Numbers without words to find them by; tables of numbers are what they should be."""
    if facts.share("digit") <= limits.max_digit_share or facts.kinds["letter"] > limits.max_rest_chars:
        return None
    loose = "".join(facts.loose_text.split())
    if len(loose) * 2 < facts.visible:
        return None
    return above("too_many_digits", sum(map(str.isdigit, loose)) / len(loose), limits.max_digit_share)


def repeated_lines(facts: Facts, limits: StructureOptions) -> Finding | None:
    """The same few lines over and over; a poem with a refrain has other lines enough."""
    if facts.repeated_share <= limits.max_repeated_share:
        return None
    if sum(map(meaningful_chars, facts.lines)) > limits.max_rest_chars:
        return None
    return above("repeated_lines", facts.repeated_share, limits.max_repeated_share)
