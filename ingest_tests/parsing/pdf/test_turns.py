from dataclasses import replace

import pytest

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import PageContent, Region
from ingest_assets.parsing.pdf.turns import main_turn, turned_back, upright, upright_content
from ingest_tests.parsing.pdf.making import word


def test_most_letters_decide_how_a_page_is_turned() -> None:
    """One word on its side turns nothing."""
    assert main_turn([(0, "ten letters"), (0, "ten letters"), (90, "side")]) == 0
    assert main_turn([(90, "side")]) == 90
    assert main_turn([]) == 0


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_turning_there_and_back_changes_nothing(turn: int) -> None:
    """Boxes are given back where they were."""
    box = Box(10, 20, 110, 50)
    there = upright(box, turn, 600, 800)
    assert turned_back(there, turn, 600, 800) == box
    assert there.area == box.area


def test_text_that_runs_upwards_runs_along_when_turned() -> None:
    """Its foot is at the right, its start at the bottom."""
    start, end = Box(20, 700, 34, 740), Box(20, 200, 34, 240)
    assert upright(start, 90, 600, 800).right <= upright(end, 90, 600, 800).left


def test_text_that_runs_downwards_runs_along_when_turned() -> None:
    """Its start is at the top."""
    start, end = Box(20, 200, 34, 240), Box(20, 700, 34, 740)
    assert upright(start, 270, 600, 800).right <= upright(end, 270, 600, 800).left


def test_all_of_a_page_is_turned() -> None:
    """Words, lines drawn, pictures, regions; and the page itself."""
    one = replace(word(0, 0, 10, "side", height=40), turn=90)
    page = PageContent(
        600, 800, (one,), (one,), (one.box,), (one.box,), (one.box,), (Region("text", 0.9, one.box),)
    )
    found = upright_content(page, 90)
    box = upright(one.box, 90, 600, 800)
    assert (found.width, found.height) == (800, 600)
    assert (found.pieces[0].box, found.pieces[0].turn) == (box, 0)
    assert found.rules == found.drawings == found.bitmaps == (found.regions[0].box,) == (box,)
