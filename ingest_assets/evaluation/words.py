"""Words, and how alike two sequences of them are."""

import html
import unicodedata
from collections.abc import Sequence

import regex

Words = tuple[str, ...]

# Letters, digits and their accents in a row are a word; every other visible character is one of its own, so
# that `(nuts) .` and `(nuts).` are the same words.
_WORD = regex.compile(r"[\w\p{M}]+|[^\s\w\p{M}]")
# Some of Docling's readers write typewriter marks for these, others leave them as they are.
_TYPEWRITER = str.maketrans("‐‒–—―‘’‚“”„", "-----'''\"\"\"")
_INVISIBLE = regex.compile(r"\p{Cf}")  # soft hyphens, joiners, direction marks


def words_of(text: str) -> Words:
    """The words of plain text: entities decoded, NFKC, no invisible characters, one kind of dash and quote.

    Case counts, and so does every other character.
    """
    plain = unicodedata.normalize("NFKC", html.unescape(text)).translate(_TYPEWRITER)
    return tuple(_WORD.findall(_INVISIBLE.sub("", plain)))


def sequence_ratio(ours: Sequence[str], truth: Sequence[str]) -> float:
    """How alike two sequences are: twice their longest common subsequence, over the sum of their lengths.

    1.0 for equal sequences, 0.0 for such that share nothing; a missing, an additional and a moved word all
    cost. It is what `difflib.SequenceMatcher.ratio` approximates, and never below it.
    """
    if not ours and not truth:
        return 1.0
    return 2 * common_length(ours, truth) / (len(ours) + len(truth))


def common_length(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    One row of the usual table is one large integer, a bit per element (Hyyrö's bit-vector recurrence), so
    that 100,000 words against 100,000 take seconds.
    """
    places: dict[str, int] = {}
    for at, element in enumerate(one):
        places[element] = places.get(element, 0) | 1 << at
    full = (1 << len(one)) - 1
    row = full
    for element in other:
        if (here := row & places.get(element, 0)) != 0:
            row = ((row + here) | (row - here)) & full
    return len(one) - row.bit_count()
