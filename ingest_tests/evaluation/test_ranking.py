"""Figures of rankings, compared with values computed by hand."""

import math

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.search.ranking import fused, ndcg, rank_documents, recall, reciprocal_rank


def test_ndcg_discounts_by_rank_and_is_one_for_the_best_ranking():
    """The second rank counts 1/log2(3)."""
    gains = {"a": 2.0, "b": 1.0}

    assert ndcg(["a", "b"], gains, 10) == 1.0
    assert math.isclose(ndcg(["x", "a"], gains, 10), (2 / math.log2(3)) / (2 + 1 / math.log2(3)))
    assert ndcg(["x", "a"], gains, 1) == 0.0


def test_recall_and_reciprocal_rank_of_a_ranking():
    """A document that is not in the ranking is a miss."""
    assert recall(["x", "a", "y", "b"], {"a", "b", "lost"}, 3) == 1 / 3
    assert reciprocal_rank(["x", "a"], {"a", "b"}) == 0.5
    assert reciprocal_rank(["x"], {"a"}) == 0.0


def test_fusion_prefers_what_both_rankings_have():
    """Two second ranks beat one first rank."""
    assert fused([["a", "b"], ["c", "b"]]) == ["b", "a", "c"]


def test_a_document_is_as_good_as_its_best_chunk():
    """And occurs in a ranking once."""
    assert rank_documents(["2", "1", "3"], {"1": "a", "2": "b", "3": "b"}) == ["b", "a"]


@given(
    st.permutations("abcdefgh"), st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.1, 9), min_size=1)
)
def test_ndcg_is_between_zero_and_one(ranking, gains):
    """And 1 for the ranking by gain."""
    assert 0.0 <= ndcg(ranking, gains, 5) <= 1.0 + 1e-9
    best = sorted(gains, key=lambda name: -gains[name])
    assert math.isclose(ndcg(best, gains, 5), 1.0)
