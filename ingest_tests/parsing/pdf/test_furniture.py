import pytest

from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.furniture import furniture_of, is_page_number
from ingest_tests.parsing.pdf.making import BOLD, block, line, prose

_HEIGHT = 800.0


def _found(*pages: list[Block]) -> list[tuple[int, str, str]]:
    found = furniture_of([(_HEIGHT, page) for page in pages], body_size=10)
    return [(page, pages[page][at].text, label) for (page, at), label in found.items()]


@pytest.mark.parametrize("text", ["7", "- 3 -", "Page 4 of 12", "xii", "7-45", "Seite 3"])
def test_page_numbers_are_known(text: str) -> None:
    """In their many dresses."""
    assert is_page_number(text)


@pytest.mark.parametrize("text", ["(2)", "2022 was good", "Figure 3", "civil law"])
def test_other_numbers_are_not(text: str) -> None:
    """A formula's number stands in brackets."""
    assert not is_page_number(text)


def test_a_number_off_the_text_is_a_page_number() -> None:
    """Also in a document of one page."""
    foot = block(line(300, 760, 8, "7"))
    assert _found([prose(50, 60, 50), foot]) == [(0, "7", "page_footer")]


def test_a_number_right_below_the_text_is_part_of_it() -> None:
    """The last line of a formula, or of a table."""
    body = prose(50, 60, 55)
    assert _found([body, block(line(60, body.box.bottom + 2, 8, "7"))]) == []


def test_what_stands_on_several_pages_at_one_height_is_furniture() -> None:
    """But for the numbers in it."""
    pages = [
        [block(line(50, 20, 200, f"Bees {n}")), prose(50, 60, 30), block(line(50, 770, 90, "Draft"))]
        for n in (1, 2)
    ]
    assert [(text, label) for _, text, label in _found(*pages)] == [
        ("Bees 1", "page_header"),
        ("Draft", "page_footer"),
        ("Bees 2", "page_header"),
        ("Draft", "page_footer"),
    ]


def test_chapters_at_the_top_of_pages_are_no_furniture() -> None:
    """They count chapters, not pages."""
    pages = [
        [block(line(50, 60, 90, f"Chapter {chapter}", style=BOLD)), prose(50, 90, 30)]
        for chapter in (4, 7, 5)
    ]
    assert _found(*pages) == []


def test_what_stands_beside_furniture_is_furniture() -> None:
    """A running head and its page number."""
    head, number = block(line(50, 20, 200, "Of bees and other things")), block(line(500, 20, 8, "9"))
    assert len(_found([head, number, prose(50, 60, 30)])) == 2


def test_the_detector_is_believed_only_where_nothing_stands_out() -> None:
    """It takes titles at the top of a page for running heads."""
    votes = (("header", 0.9),)
    small = block(line(50, 30, 200, "On bees", size=9), votes=votes)
    assert _found([small, prose(50, 60, 30)]) == [(0, "On bees", "page_header")]
    title = block(line(50, 30, 200, "On bees", style=BOLD), votes=votes)
    assert _found([title, prose(50, 60, 30)]) == []


def test_text_near_the_edge_of_a_page_stays_text() -> None:
    """A page may be full to the last line."""
    assert _found([prose(50, 20, 60), prose(300, 20, 60)], [prose(50, 20, 60)]) == []


def test_numbers_beside_the_lines_of_a_manuscript_are_furniture() -> None:
    """They count up from line to line."""
    numbers = [block(line(10, 100 + 12 * at, 8, str(223 + at))) for at in range(12)]
    assert len(_found([prose(50, 100, 12), *numbers])) == 12
    scattered = [block(line(10, 100 + 12 * at, 8, str(at * 7919 % 97))) for at in range(12)]
    assert _found([prose(50, 100, 12), *scattered]) == []


def test_a_heading_close_to_its_text_is_no_running_head() -> None:
    """The detector takes what comes first on a page for its header."""
    head = block(line(50, 50, 100, "B. Sensitivity"), votes=(("header", 0.8),))
    assert _found([head, prose(50, 66, 40)]) == []
    far = block(line(50, 40, 100, "B. Sensitivity"), votes=(("header", 0.8),))
    assert _found([far, prose(50, 66, 40)]) == [(0, "B. Sensitivity", "page_header")]
