from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import PageContent, Region
from ingest_assets.parsing.pdf.lines import Word
from ingest_assets.parsing.pdf.unruled_tables import find_unruled_table
from ingest_assets.parsing.pdf.zones import zones_of
from ingest_tests.parsing.pdf.elements import word

_AREA = Box(80, 80, 520, 400)


def _page(words: list[Word], label: str = "figure", score: float = 0.8) -> PageContent:
    return PageContent(600, 800, words=tuple(words), regions=(Region(label, score, _AREA),))


def _rows(*texts: str, font: str = "") -> list[Word]:
    """Six rows of these words, one per column."""
    return [
        word(100 + 110 * at, 120 + 16.0 * row, 40, text, font=font)
        for row in range(6)
        for at, text in enumerate(texts)
    ]


def test_rows_of_texts_that_look_like_a_picture_are_a_table() -> None:
    """The detector recognizes tables by their lines."""
    [zone] = zones_of(_page(_rows("Hive", "31", "good")))
    assert (zone.label, zone.box.left, zone.box.right) == ("table", 99, 361)


def test_a_table_ends_where_running_text_begins() -> None:
    """The detector's region may be too large."""
    prose = [word(100, 240 + 14.0 * row, 380, "text") for row in range(5)]
    box = find_unruled_table(_AREA, _page([*_rows("Hive", "31", "good"), *prose]))
    assert box is not None
    assert box.bottom == 210


def test_a_program_is_no_table() -> None:
    """Its line numbers look like a column."""
    assert find_unruled_table(_AREA, _page(_rows("12", "return", "x", font="/Courier"))) is None


def test_dots_before_numbers_are_no_table() -> None:
    """They are an index or a table of contents."""
    assert find_unruled_table(_AREA, _page(_rows("Hive", ". . . .", "31"))) is None


def test_a_formula_is_no_table() -> None:
    """Its parts are side by side."""
    assert find_unruled_table(_AREA, _page(_rows("x", "y", "z", font="/ABCDEF+CMMI10"))) is None


def test_columns_of_running_text_are_no_table() -> None:
    """Two long texts side by side are columns of a page."""
    lines = [word(left, 120 + 14.0 * row, 200, "text") for row in range(8) for left in (90, 310)]
    assert find_unruled_table(_AREA, _page(lines)) is None


def test_names_in_the_margin_are_no_table() -> None:
    """Manuals have them beside their explanations."""
    names = [word(90, 120 + 28.0 * row, 40, "name") for row in range(5)]
    texts = [word(180, 120 + 28.0 * row, 300, "text") for row in range(5)]
    assert find_unruled_table(_AREA, _page([*names, *texts])) is None


def test_a_table_needs_texts_side_by_side() -> None:
    """Else text that the detector labels as a table stays text."""
    line = [word(100 + 45 * at, 120, 42, "word") for at in range(6)]
    assert zones_of(_page(line, "table", 0.9)) == []


def test_a_region_with_a_low_score_is_a_table_if_its_rows_are() -> None:
    """Two weak signs are enough."""
    assert [zone.label for zone in zones_of(_page(_rows("Hive", "31"), "table", 0.35))] == ["table"]
