"""Cells in their place."""

import pytest

from ingest_assets.evaluation.markdown import Table
from ingest_assets.evaluation.scores import cell_agreement, content_agreement

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
