"""From text to terms: the one analysis of rows and of queries."""

import functools
import unicodedata
from collections.abc import Iterable, Set
from dataclasses import dataclass
from itertools import pairwise

import regex

from ingest_assets.embedders.languages import stemmer, stop_words
from ingest_assets.model.embedding import LexicalOptions
from ingest_assets.model.scripts import UNSPACED

# Marks belong to the letter before them (Hindi, Thai, pointed Arabic), joiners to the word around them: \w
# holds both. A run of a script without spaces is a word of its own, and the first group.
_WORD = regex.compile(
    rf"(?V1)([\w&&[{UNSPACED}]--\p{{M}}][\w&&[{UNSPACED}\p{{M}}]]*)|[\w--[[{UNSPACED}]--\p{{M}}]]+"
)
_CLUSTER = regex.compile(r".[\p{M}\u200c\u200d]*", regex.DOTALL)
_REMEMBERED, _REMEMBERED_CHARS = 200_000, 32


def folded(text: str) -> str:
    """The text in the form in which what reads alike is alike: NFKC, case-folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@dataclass(frozen=True, slots=True)
class Analysis:
    """How words become terms. `language` is a code, and empty where no rule depends on it."""

    min_chars: int = 1
    stems: bool = False
    stops: bool = False
    language: str = ""

    def terms(self, text: str, without: Set[str] = frozenset()) -> list[str]:
        """Every occurrence, in the order of the text, but for the words it is to be read `without`.

        Scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give a term for each two
        characters that stand side by side: no dictionary is needed, and any word of two or more is found.
        """
        found: list[str] = []
        for match in _WORD.finditer(folded(text)):
            if match[1]:
                found += _pairs(match[1])
            elif match[0] not in without:
                found += self.of_word(match[0])
        return [term for term in found if len(term) >= self.min_chars]

    def terms_of_pieces(self, pieces: Iterable[str]) -> list[tuple[str, ...]]:
        """The same for parts of texts cut where ASCII ends a word, ASCII letters small already."""
        return list(map(_memory(self).__getitem__, pieces))

    def is_plain(self) -> bool:
        """True when words are terms as they are."""
        return self.min_chars == 1 and not self.stems and not self.stops

    def of_word(self, word: str) -> list[str]:
        """The term of one folded word, if it is one."""
        if self.stops and word in stop_words(self.language):
            return []
        return [stemmer(self.language)(word)] if self.stems else [word]


class _Memory(dict[str, tuple[str, ...]]):
    """Terms by piece: a text is made of few, and those of one text are those of the next."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    def __missing__(self, piece: str) -> tuple[str, ...]:
        found = tuple(self._terms(piece))
        if len(piece) <= _REMEMBERED_CHARS:
            if len(self) >= _REMEMBERED:
                self.clear()
            self[piece] = found
        return found

    def _terms(self, piece: str) -> list[str]:
        if not piece.isascii():
            return self._analysis.terms(piece)
        terms = self._analysis.of_word(piece) if piece else []
        return [term for term in terms if len(term) >= self._analysis.min_chars]


@functools.lru_cache(maxsize=64)
def _memory(analysis: Analysis) -> _Memory:
    return _Memory(analysis)


def _pairs(run: str) -> list[str]:
    clusters = _CLUSTER.findall(run)
    if len(clusters) == 1:
        return clusters
    return [first + second for first, second in pairwise(clusters)]


def uses_language(options: LexicalOptions) -> bool:
    """True when a text's language can change its terms."""
    return options.stemming or options.stop_words


def analysis_for(options: LexicalOptions, language: str) -> Analysis:
    """The analysis of a document or query in `language`, by the settings."""
    if not uses_language(options):
        return Analysis(options.min_term_chars)
    chosen = language if options.language == "auto" else options.language
    return Analysis(options.min_term_chars, options.stemming, options.stop_words, chosen)
