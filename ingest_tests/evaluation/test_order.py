"""The share of the text that need not be moved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.evaluation.scores import order_score

TEXT = [f"w{at}" for at in range(40)]


def test_missing_and_additional_words_do_not_count():
    """They have a measure of their own."""
    assert order_score([*TEXT[:10], "new", *TEXT[20:]], TEXT) == 1.0


def test_a_moved_block_costs_its_share():
    """However far it is moved."""
    assert order_score(TEXT[4:] + TEXT[:4], TEXT) == pytest.approx(0.9)


def test_columns_read_across_are_half_in_order():
    """The usual fault of a layout reader."""
    across = [word for pair in zip(TEXT[:20], TEXT[20:], strict=True) for word in pair]

    assert order_score(across, TEXT) == pytest.approx(0.5, abs=0.05)


def test_words_that_repeat_are_recognised_by_those_that_follow():
    """Most words do."""
    one = ["the", "bee", "the", "hive", "the", "queen"]

    assert order_score(one, one[4:] + one[:4]) == pytest.approx(4 / 6)


@pytest.mark.parametrize(("ours", "truth"), [([], []), (["a"], []), (["a"], ["b"]), (["a", "a"], ["a"] * 9)])
def test_without_recognisable_words_there_is_no_score(ours: list[str], truth: list[str]):
    """Neither good nor bad."""
    assert order_score(ours, truth) is None


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=20))
def test_a_text_is_in_its_own_order(text: list[str]):
    """Also one that only repeats itself."""
    assert order_score(text, text) == 1.0
