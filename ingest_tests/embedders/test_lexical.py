"""Term counts: what lexical search needs of a text."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.embedders.lexical import term_counts
from ingest_assets.model.schemas import LEXICAL


def test_terms_are_counted_in_code_point_order() -> None:
    """Case and punctuation do not matter."""
    counted = term_counts("The cat, the CAT and 2 dogs.")

    assert counted == {"terms": ["2", "and", "cat", "dogs", "the"], "counts": [1, 1, 2, 1, 2], "length": 7}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("?! …", []),
        ("Straße STRASSE", ["strasse"]),
        ("ﬁne fine", ["fine"]),
        ("e\u0301te\u0301 été", ["été"]),
        ("２０２４", ["2024"]),
        ("don't", ["don", "t"]),
        ("日本語", ["日本語"]),
    ],
)
def test_what_reads_alike_is_one_term(text: str, terms: list[str]) -> None:
    """Compatibility forms, composed or not, in any case."""
    assert term_counts(text)["terms"] == terms


@pytest.mark.parametrize("word", ["हिन्दी", "தமிழ்", "ที่นี่", "عَرَبِيّ", "İstanbul"])
def test_a_word_with_combining_marks_is_one_term(word: str) -> None:
    """Vowel signs are letters of these scripts: a word cut at each cannot be searched."""
    assert len(term_counts(word)["terms"]) == 1


def test_short_terms_can_be_left_out() -> None:
    """They are not part of the length either."""
    assert term_counts("a bb ccc bb", min_chars=2) == {"terms": ["bb", "ccc"], "counts": [2, 1], "length": 3}


def test_a_count_stays_within_its_column() -> None:
    """The column holds 16 bits; the length tells the truth."""
    counted = term_counts("x " * 70_000)

    assert counted == {"terms": ["x"], "counts": [65_535], "length": 70_000}


@given(st.text(), st.integers(1, 4))
def test_any_text_gives_a_row_of_the_table(text: str, min_chars: int) -> None:
    """Terms are distinct and sorted, and the counts add up."""
    counted = term_counts(text, min_chars)

    assert counted["terms"] == sorted(set(counted["terms"]))
    assert len(counted["terms"]) == len(counted["counts"])
    assert sum(counted["counts"]) == counted["length"]
    assert all(len(term) >= min_chars for term in counted["terms"])
    row = {"chunk_id": "c", "doc_id": "d", "ordinal": 0, **counted}
    assert pa.Table.from_pylist([row], schema=LEXICAL.schema).to_pylist() == [row]
