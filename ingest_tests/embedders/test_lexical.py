"""Term counts: what lexical search needs of a text."""

import subprocess
import sys

import pytest

from ingest_assets.search.terms import STEMMED, STOPPED, Analysis, analysis_for, stemmer, stop_words
from ingest_assets.settings.embeddings import LexicalOptions
from ingest_assets.stages.lexical import count_terms
from ingest_tests.conftest import clean_environment

PLAIN = Analysis()
ENGLISH = Analysis(stems=True, stops=True, language="en")


def counted(texts: list[str], analysis: Analysis = PLAIN) -> list[tuple[list[str], list[int], int]]:
    """The counts of some texts, row by row."""
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
def test_what_reads_alike_is_one_term(text: str, terms: list[str]) -> None:
    """Compatibility forms, composed or not, in any case."""
    assert counted([text])[0][0] == terms


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "عَرَبِيّ", "İstanbul", "한국어", "snake_case"])
def test_a_word_with_combining_marks_is_one_term(word: str) -> None:
    """Vowel signs are letters of these scripts: a word cut at each cannot be searched."""
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
    """A sentence as one term would never be found again."""
    assert PLAIN.terms(text) == terms


def test_short_terms_can_be_left_out() -> None:
    """They are not part of the length either."""
    assert counted(["a bb ccc bb"], Analysis(min_chars=2)) == [(["bb", "ccc"], [2, 1], 3)]


def test_a_count_stays_within_its_column() -> None:
    """The column holds 16 bits; the length tells the truth."""
    assert counted(["x " * 70_000]) == [(["x"], [65_535], 70_000)]


def test_words_of_a_stem_are_one_term_and_stop_words_none() -> None:
    """By the rules of the language."""
    assert ENGLISH.terms("The connections of connected wings don't connect") == ["connect"] * 2 + [
        "wing",
        "connect",
    ]
    assert Analysis(stems=True, stops=True, language="de").terms("Die Häuser und das Haus") == ["haus"] * 2


@pytest.mark.parametrize("language", ["und", "ja", "xx", ""])
def test_a_language_without_rules_keeps_its_words(language: str) -> None:
    """Rather than those of another language."""
    assert Analysis(stems=True, stops=True, language=language).terms("the wings") == ["the", "wings"]


@pytest.mark.parametrize("language", STEMMED)
def test_every_language_named_has_a_stemmer(language: str) -> None:
    """A name that Snowball does not know would fail the first document."""
    assert stemmer(language)("a")


@pytest.mark.parametrize("language", STOPPED)
def test_every_list_of_stop_words_is_short(language: str) -> None:
    """Function words only: long lists hold words that people search for."""
    assert 30 < len(stop_words(language)) < 330
    assert language in STEMMED


def test_the_language_counts_only_where_it_can_change_terms() -> None:
    """And a language that is set stands for every document's own."""
    plain = LexicalOptions(stemming=False, stop_words=False)

    assert analysis_for(plain, "de") == analysis_for(plain, "en") == PLAIN
    assert analysis_for(LexicalOptions(), "de").language == "de"
    assert analysis_for(LexicalOptions(language="en"), "de").language == "en"


def test_counts_do_not_depend_on_the_process() -> None:
    """Sets and dictionaries of strings are ordered by a seed of each process."""
    code = (
        "from ingest_assets.stages.lexical import count_terms;"
        "from ingest_assets.search.terms import Analysis;"
        "found = count_terms(['Die Brücken über den Fluß, naïve 東京都'],"
        "Analysis(stems=True, stops=True, language='de')); print(ascii(found))"
    )

    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=clean_environment() | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "7")
    }

    assert len(said) == 1
