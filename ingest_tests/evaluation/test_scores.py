"""Each measure answers to its own fault."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ingest_assets.evaluation.markdown import Table, read_markdown
from ingest_assets.evaluation.scores import (
    Scores,
    cell_agreement,
    content_agreement,
    level_agreement,
    order_score,
    score,
)
from ingest_tests.evaluation.pages import HANDBOOK, documents


def _figures(scores: Scores) -> dict[str, float]:
    shares = ("word_ratio", "heading_f1", "heading_levels", "table_cell_f1", "table_content_f1", "order")
    return {name: value for name, value in scores.as_dict().items() if name in shares and value is not None}


@given(documents)
def test_a_document_scores_one_against_itself(text: str):
    """In every measure that applies."""
    assert set(_figures(score(text, text)).values()) == {1.0}


@given(documents, documents)
def test_every_score_is_a_share(ours: str, truth: str):
    """Between nothing and all."""
    assert all(0 <= value <= 1 for value in _figures(score(ours, truth)).values())


@given(documents)
def test_blocks_in_reverse_lower_nothing_but_words_and_order(text: str):
    """Headings and tables are found wherever they are."""
    blocks = text.split("\n\n")
    figures = _figures(score("\n\n".join(reversed(blocks)), text))

    assert {figures.get(name, 1.0) for name in ("heading_f1", "heading_levels", "table_cell_f1")} == {1.0}


@given(documents, documents)
def test_the_counts_are_those_of_the_other_side_when_sides_change(one: str, other: str):
    """Recall is precision seen from the other side, except where equal tables can be paired in two ways."""
    assume(len(read_markdown(one).tables) < 2 and len(read_markdown(other).tables) < 2)
    there, back = score(one, other), score(other, one)

    assert (there.headings.recall, there.headings.precision) == (
        back.headings.precision,
        back.headings.recall,
    )
    assert there.word_ratio == back.word_ratio


def test_a_heading_read_as_text_lowers_only_the_recall_of_headings():
    """Its words are there."""
    figures = score(HANDBOOK.replace("## Summer", "Summer"), HANDBOOK)

    assert (figures.headings.recall, figures.headings.precision) == (3 / 4, 1.0)
    assert (figures.word_ratio, figures.cells.f1, figures.order, figures.heading_levels) == (1, 1, 1, 1)


def test_text_read_as_a_heading_lowers_only_the_precision_of_headings():
    """The other way round."""
    figures = score(HANDBOOK.replace("Harvest", "## Harvest"), HANDBOOK)

    assert (figures.headings.recall, figures.headings.precision) == (1.0, 4 / 5)
    assert (figures.word_ratio, figures.order) == (1, 1)


def test_a_dropped_heading_leaves_order_and_tables_alone():
    """But not the words."""
    figures = score(HANDBOOK.replace("## Summer\n", ""), HANDBOOK)

    assert figures.headings.recall == 3 / 4
    assert figures.word_ratio < 1
    assert (figures.cells.f1, figures.order) == (1, 1)


def test_another_level_lowers_only_the_levels():
    """Finding a heading and knowing its rank are two things."""
    figures = score(HANDBOOK.replace("## Summer", "### Summer"), HANDBOOK)

    assert (figures.headings.f1, figures.heading_levels) == (1.0, 3 / 4)


def test_levels_of_headings_that_were_not_found_do_not_count():
    """There is nothing to compare."""
    assert level_agreement(read_markdown("# a").headings, read_markdown("# b").headings) is None


def test_shuffled_blocks_lower_the_order():
    """And the words, which are a sequence."""
    blocks = HANDBOOK.split("\n\n")
    random.Random(7).shuffle(blocks)
    figures = score("\n\n".join(blocks), HANDBOOK)

    assert figures.order is not None
    assert figures.order < 0.8
    assert figures.word_ratio < 1
    assert (figures.headings.f1, figures.cells.f1) == (1, 1)


def test_a_table_read_as_text_lowers_only_the_tables():
    """All of it."""
    lines = [line for line in HANDBOOK.splitlines() if line != "| - | - | - |"]
    figures = score("\n".join(line.replace("|", " ") for line in lines), HANDBOOK)

    assert figures.cells.f1 == 0.0
    assert (figures.word_ratio, figures.headings.f1, figures.order) == (1, 1, 1)


def test_an_empty_reading_scores_nothing():
    """Nor does it divide by zero."""
    figures = score("", HANDBOOK)

    assert (figures.word_ratio, figures.headings.f1, figures.cells.f1, figures.order) == (0, 0, 0, None)


@pytest.mark.parametrize("text", ["", "# \n", "<!-- image -->"])
def test_two_empty_texts_are_alike(text: str):
    """A page with only a picture was read well."""
    assert score(text, "").word_ratio == 1.0


# Cells in their place.

HIVES: Table = (
    ("hive", "frames", "weight"),
    ("north", "9", "31.5"),
    ("south", "7", "24.0"),
    ("east", "8", "28.2"),
)


def test_a_table_agrees_with_itself():
    """Every cell."""
    assert cell_agreement([HIVES], [HIVES]).f1 == 1.0


def test_no_tables_is_nothing_to_compare():
    """Neither good nor bad."""
    assert cell_agreement([], []).f1 is None


@pytest.mark.parametrize(("ours", "truth"), [([HIVES], []), ([], [HIVES])])
def test_a_table_on_one_side_only_costs_all_its_cells(ours: list[Table], truth: list[Table]):
    """Made up or missed."""
    assert cell_agreement(ours, truth).f1 == 0.0


def test_an_additional_row_costs_only_itself():
    """Not all the rows below it."""
    longer = (HIVES[0], ("a", "b", "c"), *HIVES[1:])

    agreement = cell_agreement([longer], [HIVES])

    assert (agreement.recall, agreement.precision) == (1.0, 12 / 15)


def test_an_additional_column_costs_only_itself():
    """Nor all the columns to its right."""
    wider = tuple((row[0], "x", *row[1:]) for row in HIVES)

    agreement = cell_agreement([wider], [HIVES])

    assert (agreement.recall, agreement.precision) == (1.0, 12 / 16)


def test_an_empty_column_costs_nothing():
    """Only text is counted."""
    wider = tuple((row[0], "", *row[1:]) for row in HIVES)

    assert cell_agreement([wider], [HIVES]).f1 == 1.0


def test_cells_in_the_wrong_place_count_as_content_only():
    """A transposed table holds the same texts."""
    turned = tuple(zip(*HIVES, strict=True))

    assert content_agreement([turned], [HIVES]).f1 == 1.0
    assert cell_agreement([turned], [HIVES]).f1 < 0.5


def test_two_rows_in_one_lose_their_cells():
    """The usual fault of a table reader."""
    merged = (HIVES[0], ("north south", "9 7", "31.5 24.0"), HIVES[3])

    assert cell_agreement([merged], [HIVES]).matched == 6


def test_tables_are_paired_by_what_they_hold():
    """Their order belongs to the reading order."""
    other: Table = (("bloom", "week"), ("willow", "10"), ("lime", "25"))

    assert cell_agreement([other, HIVES], [HIVES, other]).f1 == 1.0


def test_ragged_rows_are_compared_as_far_as_they_go():
    """Markdown does not insist on equal rows."""
    assert cell_agreement([(("a", "b"), ("c",))], [(("a", "b"), ("c", "d"))]).matched == 3


def test_huge_tables_are_compared_row_by_row():
    """Aligning them would take minutes."""
    huge = tuple((str(at), "x") for at in range(1000))

    assert cell_agreement([huge], [huge]).f1 == 1.0


# The share of the text that need not be moved.

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
