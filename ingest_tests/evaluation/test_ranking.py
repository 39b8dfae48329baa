"""Figures of rankings, against values worked out by hand."""

import math

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.search.ranking import best_first, fused, ndcg, recall, reciprocal_rank


def test_ndcg_discounts_by_place_and_knows_the_best_possible_ranking():
    """Second place is worth 1/log2(3)."""
    gains = {"a": 2.0, "b": 1.0}

    assert ndcg(["a", "b"], gains, 10) == 1.0
    assert math.isclose(ndcg(["x", "a"], gains, 10), (2 / math.log2(3)) / (2 + 1 / math.log2(3)))
    assert ndcg(["x", "a"], gains, 1) == 0.0


def test_recall_and_reciprocal_rank_count_what_is_there():
    """What is not in the ranking is a miss."""
    assert recall(["x", "a", "y", "b"], {"a", "b", "lost"}, 3) == 1 / 3
    assert reciprocal_rank(["x", "a"], {"a", "b"}) == 0.5
    assert reciprocal_rank(["x"], {"a"}) == 0.0


def test_fusion_prefers_what_both_rankings_have():
    """Twice second beats once first."""
    assert fused([["a", "b"], ["c", "b"]]) == ["b", "a", "c"]


def test_a_document_is_as_good_as_its_best_chunk():
    """And stands in a ranking once."""
    assert best_first(["2", "1", "3"], {"1": "a", "2": "b", "3": "b"}) == ["b", "a"]


@given(
    st.permutations("abcdefgh"), st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.1, 9), min_size=1)
)
def test_ndcg_lies_between_nothing_and_perfect(ranking, gains):
    """And is perfect for the ranking by gain."""
    assert 0.0 <= ndcg(ranking, gains, 5) <= 1.0 + 1e-9
    best = sorted(gains, key=lambda name: -gains[name])
    assert math.isclose(ndcg(best, gains, 5), 1.0)
