from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import PageContent
from ingest_assets.parsing.pdf.lines import Word
from ingest_assets.parsing.pdf.ruled_tables import find_ruled_tables
from ingest_tests.parsing.pdf.elements import word


def _across(y: float, left: float = 100, right: float = 400) -> Box:
    return Box(left, y, right, y + 0.5)


def _down(x: float, top: float = 100, bottom: float = 160) -> Box:
    return Box(x, top, x + 0.5, bottom)


def _cells(*lefts: float, tops: tuple[float, ...] = (105, 125, 145)) -> tuple[Word, ...]:
    return tuple(word(left, top, 30, "x") for top in tops for left in lefts)


def _tables(rules: list[Box], words: tuple[Word, ...]) -> list[Box]:
    page = PageContent(600, 800, pieces=words, words=words, rules=tuple(rules))
    return [Box(*map(round, (box.left, box.top, box.right, box.bottom))) for box in find_ruled_tables(page)]


def test_framed_cells_are_a_table() -> None:
    """A frame with a line down its middle is enough."""
    rules = [_across(100), _across(160), _down(100), _down(250), _down(400)]
    assert _tables(rules, _cells(120, 300)) == [Box(100, 100, 400, 160)]


def test_a_frame_around_text_is_no_table() -> None:
    """There is no line inside."""
    rules = [_across(100), _across(160), _down(100), _down(400)]
    assert _tables(rules, _cells(120, 300)) == []


def test_rows_between_lines_of_one_length_are_a_table() -> None:
    """As typesetters do: above, below the heading, and at the end."""
    assert _tables([_across(100), _across(120), _across(160)], _cells(120, 220, 320)) == [
        Box(100, 100, 400, 160)
    ]


def test_running_text_between_lines_is_no_table() -> None:
    """Its lines have no columns."""
    lines = tuple(word(100 + 40 * at, top, 37, "word") for top in (105, 125, 145) for at in range(7))
    assert _tables([_across(100), _across(120), _across(160)], lines) == []


def test_lines_of_different_length_are_no_table() -> None:
    """A line under a heading, one above the footnotes."""
    rules = [_across(100), _across(120, right=250), _across(160, left=150)]
    assert _tables(rules, _cells(120, 220, 320)) == []


def test_a_drawing_of_many_lines_is_no_table() -> None:
    """A map, a plan, a chart with its grid."""
    rules = [_across(100 + 3 * at) for at in range(500)] + [_down(250, 100, 1600), _down(100, 100, 1600)]
    assert _tables(rules, _cells(120, 220, 320)) == []
