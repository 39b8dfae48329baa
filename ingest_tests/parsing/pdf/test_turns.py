from dataclasses import replace

import pytest

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import PageContent, Region
from ingest_assets.parsing.pdf.turns import main_turn, rotate_back, rotate_upright, upright_content
from ingest_tests.parsing.pdf.elements import word


def test_most_letters_decide_how_a_page_is_turned() -> None:
    """Not a single word on its side."""
    assert main_turn([(0, "ten letters"), (0, "ten letters"), (90, "side")]) == 0
    assert main_turn([(90, "side")]) == 90
    assert main_turn([]) == 0


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_rotating_there_and_back_changes_nothing(turn: int) -> None:
    """Boxes get their original position."""
    box = Box(10, 20, 110, 50)
    there = rotate_upright(box, turn, 600, 800)
    assert rotate_back(there, turn, 600, 800) == box
    assert there.area == box.area


def test_upward_text_becomes_upright() -> None:
    """Its baseline is at the right, its start at the bottom."""
    start, end = Box(20, 700, 34, 740), Box(20, 200, 34, 240)
    assert rotate_upright(start, 90, 600, 800).right <= rotate_upright(end, 90, 600, 800).left


def test_downward_text_becomes_upright() -> None:
    """Its start is at the top."""
    start, end = Box(20, 200, 34, 240), Box(20, 700, 34, 740)
    assert rotate_upright(start, 270, 600, 800).right <= rotate_upright(end, 270, 600, 800).left


def test_all_content_of_a_page_is_rotated() -> None:
    """Words, lines, pictures, regions and the page size."""
    one = replace(word(0, 0, 10, "side", height=40), turn=90)
    page = PageContent(
        600, 800, (one,), (one,), (one.box,), (one.box,), (one.box,), (Region("text", 0.9, one.box),)
    )
    found = upright_content(page, 90)
    box = rotate_upright(one.box, 90, 600, 800)
    assert (found.width, found.height) == (800, 600)
    assert (found.pieces[0].box, found.pieces[0].turn) == (box, 0)
    assert found.rules == found.drawings == found.bitmaps == (found.regions[0].box,) == (box,)
