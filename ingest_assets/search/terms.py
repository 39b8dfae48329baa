"""Turns texts into terms, in the same way for rows and queries."""

import functools
import tomllib
import unicodedata
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import regex

from ingest_assets.core.identity import UNSPACED
from ingest_assets.settings.embeddings import LexicalOptions

# Stems and stop words by language code; words of other languages are not changed.


# Snowball's names of the languages that language detection can return.
SNOWBALL_NAMES = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "eo": "esperanto",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hi": "hindi",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "it": "italian",
    "lt": "lithuanian",
    "ne": "nepali",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sr": "serbian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
    "yi": "yiddish",
}
_LISTS = tomllib.loads(Path(__file__).with_name("stop_words.toml").read_text(encoding="utf-8"))
# Function words only, so that no content words are lost.
STOP_WORDS: Mapping[str, str] = _LISTS["words"]
STOP_WORDS_VERSION: str = _LISTS["version"]


@functools.cache
def stemmer(language: str) -> Callable[[str], str]:
    """Return a function from words to stems, by the Snowball rules of the language."""
    name = SNOWBALL_NAMES.get(language)
    if name is None:
        return lambda word: word
    import Stemmer

    # With a cache size of 0, threads can share one stemmer.
    stem: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord
    return stem


@functools.cache
def stop_words(language: str) -> Set[str]:
    """Return the stop words of the language, split like texts: `don't` is `don` and `t`."""
    return frozenset(Analysis().terms(STOP_WORDS.get(language, "")))


# \w includes marks, which belong to the letter before them (Hindi, Thai, pointed Arabic), and joiners, which
# belong to the word around them. A run of a script without spaces is a separate word, in the first group.
_WORD = regex.compile(
    rf"(?V1)([\w&&[{UNSPACED}]--\p{{M}}][\w&&[{UNSPACED}\p{{M}}]]*)|[\w--[[{UNSPACED}]--\p{{M}}]]+"
)
_CLUSTER = regex.compile(r".[\p{M}\u200c\u200d]*", regex.DOTALL)


def fold_case(text: str) -> str:
    """Return the text case-folded and in NFKC, so that texts that look alike are equal."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@dataclass(frozen=True, slots=True)
class Analysis:
    """How words become terms. `language` is a code; empty if no rule depends on it."""

    min_chars: int = 1
    stems: bool = False
    stops: bool = False
    language: str = ""

    def terms(self, text: str, without: Set[str] = frozenset()) -> list[str]:
        """Return every occurrence of a term, in text order; ignore the words in `without`.

        Scripts without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) give a term for each pair of
        adjacent characters: no dictionary is needed, and any word of two or more characters is found.
        """
        terms: list[str] = []
        for match in _WORD.finditer(fold_case(text)):
            if match[1]:
                terms += _pairs(match[1])
            elif match[0] not in without:
                terms += self.word_terms(match[0])
        return [term for term in terms if len(term) >= self.min_chars]

    def word_terms(self, word: str) -> list[str]:
        """Return the term of a case-folded word; empty for a stop word."""
        if self.stops and word in stop_words(self.language):
            return []
        return [stemmer(self.language)(word)] if self.stems else [word]


def _pairs(run: str) -> list[str]:
    clusters = _CLUSTER.findall(run)
    if len(clusters) == 1:
        return clusters
    return [first + second for first, second in pairwise(clusters)]


def uses_language(options: LexicalOptions) -> bool:
    """True if a text's language can change its terms."""
    return options.stemming or options.stop_words


def analysis_for(options: LexicalOptions, language: str) -> Analysis:
    """Return the analysis for a document or query in `language`, by the settings."""
    if not uses_language(options):
        return Analysis(options.min_term_chars)
    chosen = language if options.language == "auto" else options.language
    return Analysis(options.min_term_chars, options.stemming, options.stop_words, chosen)
