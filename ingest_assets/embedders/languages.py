"""Stems and stop words by language code; a language without rules keeps its words as they are."""

import functools
from collections.abc import Callable, Set

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
# What bm25s calls its lists: function words only, so that no content is lost.
STOPPED = {
    "da": "DANISH",
    "de": "GERMAN",
    "en": "EN_PLUS",
    "es": "SPANISH",
    "fr": "FRENCH",
    "it": "ITALIAN",
    "nl": "DUTCH",
    "no": "NORWEGIAN",
    "pt": "PORTUGUESE",
    "ru": "RUSSIAN",
    "sv": "SWEDISH",
    "tr": "TURKISH",
}


@functools.cache
def stemmer(language: str) -> Callable[[str], str]:
    """A word's stem by the Snowball rules of the language."""
    name = STEMMED.get(language)
    if name is None:
        return lambda word: word
    import Stemmer

    # Without a cache of its own: whoever asks remembers, and threads may share it.
    stem: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord
    return stem


@functools.cache
def stop_words(language: str) -> Set[str]:
    """The commonest words of the language, as the analysis sees them: `don't` is `don` and `t`."""
    name = STOPPED.get(language)
    if name is None:
        return frozenset()
    from bm25s import stopwords

    from ingest_assets.embedders.terms import Analysis

    listed = getattr(stopwords, f"STOPWORDS_{name}")
    return frozenset(term for word in listed for term in Analysis().terms(word))
