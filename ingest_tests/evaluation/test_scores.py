"""Each score reacts to one kind of parsing error."""

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
def test_every_score_is_a_share(parsed: str, truth: str):
    """Between 0 and 1."""
    assert all(0 <= value <= 1 for value in _figures(score(parsed, truth)).values())


@given(documents)
def test_reversed_blocks_lower_only_words_and_order(text: str):
    """Headings and tables are found wherever they are."""
    blocks = text.split("\n\n")
    figures = _figures(score("\n\n".join(reversed(blocks)), text))

    assert {figures.get(name, 1.0) for name in ("heading_f1", "heading_levels", "table_cell_f1")} == {1.0}


@given(documents, documents)
def test_swapping_the_sides_swaps_recall_and_precision(left: str, right: str):
    """Except if equal tables can be paired in two ways."""
    assume(len(read_markdown(left).tables) < 2 and len(read_markdown(right).tables) < 2)
    scores, swapped = score(left, right), score(right, left)

    assert (scores.headings.recall, scores.headings.precision) == (
        swapped.headings.precision,
        swapped.headings.recall,
    )
    assert scores.word_ratio == swapped.word_ratio


def test_a_heading_read_as_text_lowers_only_the_recall_of_headings():
    """Its words are in the text."""
    figures = score(HANDBOOK.replace("## Summer", "Summer"), HANDBOOK)

    assert (figures.headings.recall, figures.headings.precision) == (3 / 4, 1.0)
    assert (figures.word_ratio, figures.cells.f1, figures.order, figures.heading_levels) == (1, 1, 1, 1)


def test_text_read_as_a_heading_lowers_only_the_precision_of_headings():
    """Its words are in the text as well."""
    figures = score(HANDBOOK.replace("Harvest", "## Harvest"), HANDBOOK)

    assert (figures.headings.recall, figures.headings.precision) == (1.0, 4 / 5)
    assert (figures.word_ratio, figures.order) == (1, 1)


def test_a_dropped_heading_lowers_neither_order_nor_tables():
    """It lowers the word ratio."""
    figures = score(HANDBOOK.replace("## Summer\n", ""), HANDBOOK)

    assert figures.headings.recall == 3 / 4
    assert figures.word_ratio < 1
    assert (figures.cells.f1, figures.order) == (1, 1)


def test_another_level_lowers_only_the_levels():
    """The heading itself is found."""
    figures = score(HANDBOOK.replace("## Summer", "### Summer"), HANDBOOK)

    assert (figures.headings.f1, figures.heading_levels) == (1.0, 3 / 4)


def test_levels_of_headings_that_were_not_found_do_not_count():
    """Without a matching heading there is no score."""
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


def test_an_empty_text_scores_zero():
    """Without division by zero."""
    figures = score("", HANDBOOK)

    assert (figures.word_ratio, figures.headings.f1, figures.cells.f1, figures.order) == (0, 0, 0, None)


@pytest.mark.parametrize("text", ["", "# \n", "<!-- image -->"])
def test_two_empty_texts_are_equal(text: str):
    """A page with only a picture has no words."""
    assert score(text, "").word_ratio == 1.0


# Cells in their place.

HIVES: Table = (
    ("hive", "frames", "weight"),
    ("north", "9", "31.5"),
    ("south", "7", "24.0"),
    ("east", "8", "28.2"),
)


def test_a_table_matches_itself():
    """Every cell."""
    assert cell_agreement([HIVES], [HIVES]).f1 == 1.0


def test_without_tables_there_is_no_cell_score():
    """None is neither good nor bad."""
    assert cell_agreement([], []).f1 is None


@pytest.mark.parametrize(("parsed", "truth"), [([HIVES], []), ([], [HIVES])])
def test_a_table_on_one_side_only_costs_all_its_cells(parsed: list[Table], truth: list[Table]):
    """Additional or missing."""
    assert cell_agreement(parsed, truth).f1 == 0.0


def test_an_additional_row_costs_only_its_cells():
    """Not those of the rows below it."""
    longer = (HIVES[0], ("a", "b", "c"), *HIVES[1:])

    agreement = cell_agreement([longer], [HIVES])

    assert (agreement.recall, agreement.precision) == (1.0, 12 / 15)


def test_an_additional_column_costs_only_its_cells():
    """Not those of the columns to its right."""
    wider = tuple((row[0], "x", *row[1:]) for row in HIVES)

    agreement = cell_agreement([wider], [HIVES])

    assert (agreement.recall, agreement.precision) == (1.0, 12 / 16)


def test_an_empty_column_costs_nothing():
    """Empty cells do not count."""
    wider = tuple((row[0], "", *row[1:]) for row in HIVES)

    assert cell_agreement([wider], [HIVES]).f1 == 1.0


def test_cells_in_the_wrong_place_count_as_content_only():
    """A transposed table has the same texts."""
    turned = tuple(zip(*HIVES, strict=True))

    assert content_agreement([turned], [HIVES]).f1 == 1.0
    assert cell_agreement([turned], [HIVES]).f1 < 0.5


def test_two_merged_rows_lose_their_cells():
    """A frequent error of table detection."""
    merged = (HIVES[0], ("north south", "9 7", "31.5 24.0"), HIVES[3])

    assert cell_agreement([merged], [HIVES]).matched == 6


def test_tables_are_paired_by_content():
    """Their order is measured by the reading order."""
    other: Table = (("bloom", "week"), ("willow", "10"), ("lime", "25"))

    assert cell_agreement([other, HIVES], [HIVES, other]).f1 == 1.0


def test_rows_of_different_length_are_compared():
    """Markdown allows them."""
    assert cell_agreement([(("a", "b"), ("c",))], [(("a", "b"), ("c", "d"))]).matched == 3


def test_huge_tables_are_compared_row_by_row():
    """Aligning them would take minutes."""
    huge = tuple((str(at), "x") for at in range(1000))

    assert cell_agreement([huge], [huge]).f1 == 1.0


# Reading order: the share of the text that need not be moved.

TEXT = [f"w{at}" for at in range(40)]


def test_missing_and_additional_words_do_not_count():
    """The word ratio measures them."""
    assert order_score([*TEXT[:10], "new", *TEXT[20:]], TEXT) == 1.0


def test_a_moved_block_costs_its_share():
    """At any distance."""
    assert order_score(TEXT[4:] + TEXT[:4], TEXT) == pytest.approx(0.9)


def test_columns_read_across_are_half_in_order():
    """A frequent error of layout detection."""
    across = [word for pair in zip(TEXT[:20], TEXT[20:], strict=True) for word in pair]

    assert order_score(across, TEXT) == pytest.approx(0.5, abs=0.05)


def test_repeated_words_are_recognised_by_the_words_after_them():
    """Most words occur more than once."""
    words = ["the", "bee", "the", "hive", "the", "queen"]

    assert order_score(words, words[4:] + words[:4]) == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("parsed", "truth"), [([], []), (["a"], []), (["a"], ["b"]), (["a", "a"], ["a"] * 9)]
)
def test_without_recognisable_words_there_is_no_score(parsed: list[str], truth: list[str]):
    """None is neither good nor bad."""
    assert order_score(parsed, truth) is None


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=20))
def test_a_text_is_in_its_own_order(text: list[str]):
    """Also if it only repeats itself."""
    assert order_score(text, text) == 1.0
