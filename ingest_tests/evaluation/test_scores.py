"""Each measure answers to its own fault."""

import random

import pytest
from hypothesis import assume, given

from ingest_assets.evaluation.markdown import read_markdown
from ingest_assets.evaluation.scores import Scores, level_agreement, score
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
