import pytest

from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.furniture import furniture_of, is_page_number
from ingest_tests.parsing.pdf.elements import BOLD, block, line, prose

_HEIGHT = 800.0


def _furniture(*pages: list[Block]) -> list[tuple[int, str, str]]:
    found = furniture_of([(_HEIGHT, page) for page in pages], body_size=10)
    return [(page, pages[page][at].text, label) for (page, at), label in found.items()]


@pytest.mark.parametrize("text", ["7", "- 3 -", "Page 4 of 12", "xii", "7-45", "Seite 3"])
def test_page_numbers_are_recognized(text: str) -> None:
    """In many notations."""
    assert is_page_number(text)


@pytest.mark.parametrize("text", ["(2)", "2022 was good", "Figure 3", "civil law"])
def test_other_numbers_are_no_page_numbers(text: str) -> None:
    """The number of a formula is in brackets."""
    assert not is_page_number(text)


def test_a_number_away_from_the_text_is_a_page_number() -> None:
    """Also in a document of one page."""
    foot = block(line(300, 760, 8, "7"))
    assert _furniture([prose(50, 60, 50), foot]) == [(0, "7", "page_footer")]


def test_a_number_right_below_the_text_is_part_of_it() -> None:
    """It may end a formula or a table."""
    body = prose(50, 60, 55)
    assert _furniture([body, block(line(60, body.box.bottom + 2, 8, "7"))]) == []


def test_text_at_the_same_height_of_several_pages_is_furniture() -> None:
    """The numbers in it may differ."""
    pages = [
        [block(line(50, 20, 200, f"Bees {n}")), prose(50, 60, 30), block(line(50, 770, 90, "Draft"))]
        for n in (1, 2)
    ]
    assert [(text, label) for _, text, label in _furniture(*pages)] == [
        ("Bees 1", "page_header"),
        ("Draft", "page_footer"),
        ("Bees 2", "page_header"),
        ("Draft", "page_footer"),
    ]


def test_chapters_at_the_top_of_pages_are_no_furniture() -> None:
    """Their numbers count chapters, not pages."""
    pages = [
        [block(line(50, 60, 90, f"Chapter {chapter}", style=BOLD)), prose(50, 90, 30)]
        for chapter in (4, 7, 5)
    ]
    assert _furniture(*pages) == []


def test_text_beside_furniture_is_furniture() -> None:
    """A running head and its page number."""
    head, number = block(line(50, 20, 200, "Of bees and other things")), block(line(500, 20, 8, "9"))
    assert len(_furniture([head, number, prose(50, 60, 30)])) == 2


def test_the_detectors_headers_must_not_stand_out() -> None:
    """It labels titles at the top of a page as headers."""
    votes = (("header", 0.9),)
    small = block(line(50, 30, 200, "On bees", size=9), votes=votes)
    assert _furniture([small, prose(50, 60, 30)]) == [(0, "On bees", "page_header")]
    title = block(line(50, 30, 200, "On bees", style=BOLD), votes=votes)
    assert _furniture([title, prose(50, 60, 30)]) == []


def test_text_near_the_edge_of_a_page_stays_text() -> None:
    """A page may be full."""
    assert _furniture([prose(50, 20, 60), prose(300, 20, 60)], [prose(50, 20, 60)]) == []


def test_numbers_beside_the_lines_of_a_manuscript_are_furniture() -> None:
    """They count the lines."""
    numbers = [block(line(10, 100 + 12 * at, 8, str(223 + at))) for at in range(12)]
    assert len(_furniture([prose(50, 100, 12), *numbers])) == 12
    scattered = [block(line(10, 100 + 12 * at, 8, str(at * 7919 % 97))) for at in range(12)]
    assert _furniture([prose(50, 100, 12), *scattered]) == []


def test_a_heading_close_to_its_text_is_no_running_head() -> None:
    """The detector may label the first heading of a page as a header."""
    head = block(line(50, 50, 100, "B. Sensitivity"), votes=(("header", 0.8),))
    assert _furniture([head, prose(50, 66, 40)]) == []
    far = block(line(50, 40, 100, "B. Sensitivity"), votes=(("header", 0.8),))
    assert _furniture([far, prose(50, 66, 40)]) == [(0, "B. Sensitivity", "page_header")]
