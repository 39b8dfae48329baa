from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import Region
from ingest_assets.parsing.pdf.lines import WordIndex
from ingest_assets.parsing.pdf.rows import is_marker, lines_of
from ingest_tests.parsing.pdf.elements import word


def _texts(*pieces: tuple[float, float, float, str], regions: tuple[Region, ...] = ()) -> list[str]:
    found = lines_of([word(*piece) for piece in pieces], WordIndex(()), regions)
    return [line.text for line in found]


def test_pieces_close_to_each_other_are_one_line() -> None:
    """Parsers split lines where the font changes."""
    assert _texts((10, 0, 50, "bees forage"), (63, 0, 40, "in spring")) == ["bees forage in spring"]


def test_pieces_of_two_columns_are_two_lines() -> None:
    """The gap between columns is wider than a space."""
    assert _texts((10, 0, 200, "left column"), (225, 0, 200, "right column")) == [
        "left column",
        "right column",
    ]


def test_a_marker_may_be_further_away() -> None:
    """Bullets and section numbers are."""
    assert _texts((10, 0, 4, "•"), (40, 0, 90, "Weigh every hive")) == ["• Weigh every hive"]
    assert _texts((10, 0, 15, "2.1"), (50, 0, 90, "Styles")) == ["2.1 Styles"]
    assert _texts((10, 0, 15, "hive"), (50, 0, 90, "Styles")) == ["hive", "Styles"]


def test_lines_come_from_top_to_bottom() -> None:
    """In any order of the parser."""
    assert _texts((10, 40, 50, "second"), (10, 0, 50, "first")) == ["first", "second"]


def test_one_region_bridges_a_wider_gap() -> None:
    """The detector joins both pieces."""
    pieces = ((10, 0, 50, "wide"), (72, 0, 50, "apart"))
    assert _texts(*pieces) == ["wide", "apart"]
    assert _texts(*pieces, regions=(Region("text", 0.9, Box(0, 0, 200, 20)),)) == ["wide apart"]


def test_only_whole_markers_are_markers() -> None:
    """A word that begins like one is a word."""
    assert all(map(is_marker, ("•", "1.", "(a)", "2.1", "A")))
    assert not any(map(is_marker, ("1st", "hive", "• Weigh", "")))


def test_close_columns_of_text_are_not_joined() -> None:
    """OCR's boxes around lines are wider than the lines."""
    pieces = [word(left, 14.0 * row, 200, "a line") for row in range(6) for left in (50, 256)]
    assert len(lines_of(pieces, WordIndex(()), ())) == 12
    assert len(lines_of(pieces[:4], WordIndex(()), ())) == 2
