"""BM25 from counts and statistics, compared with the textbook formula."""

import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.errors import ConfigError
from ingest_assets.search.bm25 import CorpusStats, LexicalIndex
from ingest_assets.search.terms import analysis_for
from ingest_assets.settings.embeddings import LexicalOptions
from ingest_tests.embedders.texts import lexical_rows, stats_by_hand

DEFAULT = LexicalOptions()
PLAIN = LexicalOptions(stemming=False, stop_words=False)
TEXTS = {
    "bridge": "The old bridges were inspected; a bridge rusts.",
    "soup": "Onion soup simmers for an hour.",
    "both": "Under the bridge they eat soup, and more soup.",
    "empty": "...",
}
ABOUT_WINGS = {
    "asked for": "The boundary layer of the wing is what separates in the wake.",
    **{f"other {number}": f"What the drag of the wing is in test {number}." for number in range(50)},
}


def index(texts=TEXTS, options: LexicalOptions = DEFAULT, **parameters: float) -> LexicalIndex:
    """An index of some texts."""
    rows = lexical_rows(texts, options)
    return LexicalIndex(rows, stats_by_hand(rows), options, **parameters)


def index_of_languages(**texts: dict[str, str]) -> LexicalIndex:
    """An index of texts by their language."""
    rows = pa.concat_tables([lexical_rows(each, DEFAULT, language) for language, each in texts.items()])
    return LexicalIndex(rows, stats_by_hand(rows), DEFAULT)


def by_the_book(texts, query: str, options: LexicalOptions, k1: float, b: float) -> dict[str, float]:
    """Robertson and Zaragoza's formula, term by term."""
    analysis = analysis_for(options, "en")
    bags = {name: Counter(analysis.terms(text)) for name, text in texts.items()}
    average = sum(bag.total() for bag in bags.values()) / len(bags)
    scores = dict.fromkeys(texts, 0.0)
    for term in analysis.terms(query):
        frequency = sum(term in bag for bag in bags.values())
        rarity = math.log(1 + (len(bags) - frequency + 0.5) / (frequency + 0.5))
        for name, bag in bags.items():
            weight = bag[term] + k1 * (1 - b + b * bag.total() / max(average, 1e-9))
            scores[name] += rarity * bag[term] * (k1 + 1) / weight if bag[term] else 0.0
    return {name: score for name, score in scores.items() if score > 0}


def test_a_query_finds_other_forms_of_its_words() -> None:
    """Rows and queries are analyzed in the same way."""
    assert [name for name, _ in index().search("inspecting bridges")] == ["bridge", "both"]
    assert [name for name, _ in index(options=PLAIN).search("inspecting bridges")] == ["bridge"]


@given(
    st.lists(st.text("ab c", max_size=12), min_size=1, max_size=8),
    st.text("abc ", max_size=8),
    st.floats(0, 3),
    st.floats(0, 1),
)
def test_scores_are_those_of_the_formula(texts: list[str], query: str, k1: float, b: float) -> None:
    """For several parameters, in the right order."""
    named = {f"chunk {number}": text for number, text in enumerate(texts)}

    hits = index(named, PLAIN, k1=k1, b=b).search(query, len(named))

    assert dict(hits) == pytest.approx(by_the_book(named, query, PLAIN, k1, b))
    assert [score for _, score in hits] == sorted((score for _, score in hits), reverse=True)


def test_search_returns_the_best_and_ties_in_table_order() -> None:
    """So the same query always has the same result."""
    same = {f"chunk {number}": "soup" for number in range(9)}

    assert [name for name, _ in index(same).search("soup", 3)] == ["chunk 0", "chunk 1", "chunk 2"]


@pytest.mark.parametrize("query", ["", "?!", "the", "zebra"])
def test_a_query_without_a_known_term_finds_nothing(query: str) -> None:
    """Not every chunk with a score of zero."""
    assert index().search(query) == []


def test_terms_missing_from_the_statistics_count() -> None:
    """A batch can be newer than the statistics."""
    rows = lexical_rows(TEXTS, DEFAULT)
    old = CorpusStats(2, 3.0, {"onion": 1})

    assert LexicalIndex(rows, old, DEFAULT).search("bridge")[0][0] == "bridge"


def test_a_query_is_analyzed_in_each_language_of_the_rows() -> None:
    """Unless its language is given."""
    mixed = index_of_languages(en={"english": "beautiful houses"}, de={"deutsch": "schöne Häuser"})

    assert [name for name, _ in mixed.search("Haus houses")] == ["english", "deutsch"]
    assert [name for name, _ in mixed.search("Häusern", language="de")] == ["deutsch"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("und", "Is it? What of the?"),
        ("de", "Was ist der Preis? What is the price of a ticket to the sea?"),
        ("de", "What is the boundary of the sea, fragt der Fischer."),
    ],
)
def test_stop_words_of_the_query_have_no_weight_in_rows_of_another_language(language: str, text: str) -> None:
    """They are rare there, and rare words weigh most."""
    mixed = index_of_languages(en=ABOUT_WINGS, **{language: {"stray": text}})

    assert mixed.search("What is the boundary layer of the wing?")[0][0] == "asked for"


def test_stop_words_are_removed_from_a_query_in_the_rarer_language() -> None:
    """In English rows `die` is an ordinary word, and German queries often contain it."""
    english = {**ABOUT_WINGS, "stray": "As bees die they die alone."}
    mixed = index_of_languages(en=english, de={"gefragt": "Die Grenzschicht liegt am Flügel an."})

    assert [name for name, _ in mixed.search("Was ist die Grenzschicht?")] == ["gefragt"]
    assert [name for name, _ in mixed.search("die Grenzschicht")] == ["gefragt"]


def test_a_stop_word_of_another_language_is_kept() -> None:
    """`die` and `war` are content words in English."""
    english = {"casting": "Steel for die casting.", "casts": "Casts of plaster.", "war": "Man at war."}
    mixed = index_of_languages(en=english, de={"deutsch": "Der Gips war trocken, die Form auch."})

    assert [name for name, _ in mixed.search("die casting")] == ["casting", "casts"]
    assert [name for name, _ in mixed.search("man at war")] == ["war"]


def test_on_a_tie_the_query_is_in_the_language_with_more_chunks() -> None:
    """Two words are not enough to decide."""
    words = {"war crimes": "war crimes", "crimes": "crimes"}
    more_english = index_of_languages(en=words, de={"de": "Der Apfel war faul."})
    more_german = index_of_languages(en=words, de={"a": "Apfel", "b": "Birne", "c": "Kirsche"})

    assert [name for name, _ in more_english.search("war crimes")] == ["war crimes", "crimes"]
    assert [name for name, _ in more_german.search("war crimes")] == ["crimes", "war crimes"]


def test_a_query_of_stop_words_alone_keeps_them() -> None:
    """Such as a title of three words."""
    mixed = index_of_languages(en=ABOUT_WINGS, und={"band": "The Who"})

    assert [name for name, _ in mixed.search("the who")] == ["band"]


@given(st.lists(st.sampled_from(["the", "bridge", "bridges", "die", "soup", "of", "東京"]), max_size=6))
def test_in_a_corpus_of_one_language_every_query_is_in_it(words: list[str]) -> None:
    """With and without the language given."""
    query = " ".join(words)

    assert index().search(query) == index().search(query, language="en")


def test_without_tables_the_error_says_what_to_run(tmp_path: Path) -> None:
    """Before the first run."""
    with pytest.raises(ConfigError, match="a home in which `ingest embed` has run"):
        LexicalIndex.open(tmp_path)
