"""From text to terms: the one analysis of rows and of queries."""

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

# Stems and stop words by language code; a language without rules keeps its words as they are.


# What Snowball calls the languages that language detection tells apart.
STEMMED = {
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
# Function words only, so that no content is lost.
STOPPED: Mapping[str, str] = _LISTS["words"]
STOP_WORDS_VERSION: str = _LISTS["version"]


@functools.cache
def stemmer(language: str) -> Callable[[str], str]:
    """A word's stem by the Snowball rules of the language."""
    name = STEMMED.get(language)
    if name is None:
        return lambda word: word
    import Stemmer

    # Without its cache, threads may share one stemmer.
    stem: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord
    return stem


@functools.cache
def stop_words(language: str) -> Set[str]:
    """The commonest words of the language, as the analysis sees them: `don't` is `don` and `t`."""
    return frozenset(Analysis().terms(STOPPED.get(language, "")))


# Marks belong to the letter before them (Hindi, Thai, pointed Arabic), joiners to the word around them: \w
# holds both. A run of a script without spaces is a word of its own, and the first group.
_WORD = regex.compile(
    rf"(?V1)([\w&&[{UNSPACED}]--\p{{M}}][\w&&[{UNSPACED}\p{{M}}]]*)|[\w--[[{UNSPACED}]--\p{{M}}]]+"
)
_CLUSTER = regex.compile(r".[\p{M}\u200c\u200d]*", regex.DOTALL)


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

    def of_word(self, word: str) -> list[str]:
        """The term of one folded word, if it is one."""
        if self.stops and word in stop_words(self.language):
            return []
        return [stemmer(self.language)(word)] if self.stems else [word]


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
