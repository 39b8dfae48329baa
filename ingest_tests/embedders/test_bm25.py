"""BM25 from counts and statistics, as the textbook has it."""

import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.embedders.bm25 import CorpusStats, LexicalIndex
from ingest_assets.embedders.terms import analysis_for
from ingest_assets.model.embedding import LexicalOptions
from ingest_assets.model.errors import ConfigError
from ingest_tests.embedders.texts import lexical_rows, stats_by_hand

DEFAULT = LexicalOptions()
PLAIN = LexicalOptions(stemming=False, stop_words=False)
TEXTS = {
    "bridge": "The old bridges were inspected; a bridge rusts.",
    "soup": "Onion soup simmers for an hour.",
    "both": "Under the bridge they eat soup, and more soup.",
    "empty": "...",
}


def index(texts=TEXTS, options: LexicalOptions = DEFAULT, **parameters: float) -> LexicalIndex:
    """An index of some texts."""
    rows = lexical_rows(texts, options)
    return LexicalIndex(rows, stats_by_hand(rows), options, **parameters)


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
    """Rows and query go through one analysis."""
    assert [name for name, _ in index().search("inspecting bridges")] == ["bridge", "both"]
    assert [name for name, _ in index(options=PLAIN).search("inspecting bridges")] == ["bridge"]


@given(
    st.lists(st.text("ab c", max_size=12), min_size=1, max_size=8),
    st.text("abc ", max_size=8),
    st.floats(0, 3),
    st.floats(0, 1),
)
def test_scores_are_those_of_the_formula(texts: list[str], query: str, k1: float, b: float) -> None:
    """In the right order, whatever the parameters."""
    named = {f"chunk {number}": text for number, text in enumerate(texts)}

    found = index(named, PLAIN, k1=k1, b=b).search(query, len(named))

    assert dict(found) == pytest.approx(by_the_book(named, query, PLAIN, k1, b))
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_only_the_best_are_given_and_equal_ones_in_table_order() -> None:
    """The same question has the same answer."""
    same = {f"chunk {number}": "soup" for number in range(9)}

    assert [name for name, _ in index(same).search("soup", 3)] == ["chunk 0", "chunk 1", "chunk 2"]


@pytest.mark.parametrize("query", ["", "?!", "the", "zebra"])
def test_a_query_without_a_known_term_finds_nothing(query: str) -> None:
    """Rather than everything, equally."""
    assert index().search(query) == []


def test_terms_that_the_statistics_do_not_know_yet_still_count() -> None:
    """A batch may be written a moment before the statistics are."""
    rows = lexical_rows(TEXTS, DEFAULT)
    old = CorpusStats(2, 3.0, {"onion": 1})

    assert LexicalIndex(rows, old, DEFAULT).search("bridge")[0][0] == "bridge"


def test_a_query_is_read_in_each_of_the_rows_languages() -> None:
    """Unless its own is given."""
    import pyarrow as pa

    english = lexical_rows({"english": "beautiful houses"}, DEFAULT, "en")
    german = lexical_rows({"deutsch": "schöne Häuser"}, DEFAULT, "de")
    rows = pa.concat_tables([english, german])
    mixed = LexicalIndex(rows, stats_by_hand(rows), DEFAULT)

    assert [name for name, _ in mixed.search("Haus houses")] == ["english", "deutsch"]
    assert [name for name, _ in mixed.search("Häusern", language="de")] == ["deutsch"]


def test_without_tables_the_error_says_what_to_run(tmp_path: Path) -> None:
    """Before the first run."""
    with pytest.raises(ConfigError, match="run `ingest embed`"):
        LexicalIndex.open(tmp_path)
