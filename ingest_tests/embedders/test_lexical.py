"""Term counts for lexical search."""

import subprocess
import sys

import pytest

from ingest_assets.search.terms import SNOWBALL_NAMES, STOP_WORDS, Analysis, analysis_for, stemmer, stop_words
from ingest_assets.settings.embeddings import LexicalOptions
from ingest_assets.stages.lexical import count_terms
from ingest_tests.conftest import clean_environment

PLAIN = Analysis()
ENGLISH = Analysis(stems=True, stops=True, language="en")


def counted(texts: list[str], analysis: Analysis = PLAIN) -> list[tuple[list[str], list[int], int]]:
    """Return the counts of some texts, row by row."""
    columns = count_terms(texts, analysis)
    return list(zip(columns["terms"], columns["counts"], columns["length"], strict=True))


def test_terms_are_counted_in_code_point_order() -> None:
    """Case and punctuation do not matter."""
    assert counted(["The cat, the CAT and 2 dogs."]) == [
        (["2", "and", "cat", "dogs", "the"], [1, 1, 2, 1, 2], 7)
    ]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("?! …", []),
        ("Straße STRASSE", ["strasse"]),
        ("ﬁne fine", ["fine"]),
        ("e\u0301te\u0301 été", ["été"]),
        ("２０２４", ["2024"]),
        ("don't don’t", ["don", "t"]),
    ],
)
def test_texts_that_look_alike_are_one_term(text: str, terms: list[str]) -> None:
    """Compatibility forms, composed or not, in any case."""
    assert counted([text])[0][0] == terms


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "عَرَبِيّ", "İstanbul", "한국어", "snake_case"])
def test_a_word_with_combining_marks_is_one_term(word: str) -> None:
    """Vowel signs belong to the word in these scripts; cut there, it could not be found."""
    assert len(PLAIN.terms(word)) == 1


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("日本語", ["日本", "本語"]),
        ("茶", ["茶"]),
        ("JR東日本 2024年", ["jr", "東日", "日本", "2024", "年"]),
        ("タワーへ", ["タワ", "ワー", "ーへ"]),
        ("ที่นี่ไทย", ["ที่นี่", "นี่ไ", "ไท", "ทย"]),
        ("我们，都有", ["我们", "都有"]),
    ],
)
def test_scripts_without_spaces_give_pairs_of_characters(text: str, terms: list[str]) -> None:
    """A whole sentence as one term would never be found."""
    assert PLAIN.terms(text) == terms


def test_short_terms_can_be_left_out() -> None:
    """They do not count in the length either."""
    assert counted(["a bb ccc bb"], Analysis(min_chars=2)) == [(["bb", "ccc"], [2, 1], 3)]


def test_a_count_stays_within_its_column() -> None:
    """The column has 16 bits; the length is exact."""
    assert counted(["x " * 70_000]) == [(["x"], [65_535], 70_000)]


def test_words_with_the_same_stem_are_one_term_and_stop_words_are_removed() -> None:
    """By the rules of the language."""
    assert ENGLISH.terms("The connections of connected wings don't connect") == ["connect"] * 2 + [
        "wing",
        "connect",
    ]
    assert Analysis(stems=True, stops=True, language="de").terms("Die Häuser und das Haus") == ["haus"] * 2


@pytest.mark.parametrize("language", ["und", "ja", "xx", ""])
def test_a_language_without_rules_keeps_its_words(language: str) -> None:
    """The rules of another language are not used instead."""
    assert Analysis(stems=True, stops=True, language=language).terms("the wings") == ["the", "wings"]


@pytest.mark.parametrize("language", SNOWBALL_NAMES)
def test_every_language_named_has_a_stemmer(language: str) -> None:
    """With a name that Snowball does not know, the first document would fail."""
    assert stemmer(language)("a")


@pytest.mark.parametrize("language", STOP_WORDS)
def test_every_list_of_stop_words_is_short(language: str) -> None:
    """Only function words: long lists contain words that people search for."""
    assert 30 < len(stop_words(language)) < 330
    assert language in SNOWBALL_NAMES


def test_the_language_is_used_only_where_it_can_change_terms() -> None:
    """A language in the settings replaces that of the documents."""
    plain = LexicalOptions(stemming=False, stop_words=False)

    assert analysis_for(plain, "de") == analysis_for(plain, "en") == PLAIN
    assert analysis_for(LexicalOptions(), "de").language == "de"
    assert analysis_for(LexicalOptions(language="en"), "de").language == "en"


def test_counts_do_not_depend_on_the_process() -> None:
    """Python orders sets of strings by a seed of each process."""
    code = (
        "from ingest_assets.stages.lexical import count_terms;"
        "from ingest_assets.search.terms import Analysis;"
        "found = count_terms(['Die Brücken über den Fluß, naïve 東京都'],"
        "Analysis(stems=True, stops=True, language='de')); print(ascii(found))"
    )

    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=clean_environment() | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "7")
    }

    assert len(outputs) == 1
