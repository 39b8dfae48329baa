from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.order import Piece, reading_order


def _order(**pieces: tuple[float, float, float, float]) -> str:
    """Names in reading order; each piece has left, top, right, bottom, and many lines."""
    places = [Piece(Box(*box), lines=9) for box in pieces.values()]
    names = list(pieces)
    return "".join(names[at] for at in reading_order(places))


def test_one_column_is_read_from_top_to_bottom() -> None:
    """In any order of its pieces."""
    assert _order(b=(50, 200, 500, 300), a=(50, 50, 500, 180), c=(50, 320, 300, 400)) == "abc"


def test_two_columns_are_read_one_after_the_other() -> None:
    """Not across."""
    left = {"a": (50, 50, 280, 200), "b": (50, 210, 280, 400)}
    right = {"c": (310, 50, 540, 120), "d": (310, 130, 540, 400)}
    assert _order(**right, **left) == "abcd"


def test_a_title_over_two_columns_comes_first() -> None:
    """Even if a column's first heading starts further left."""
    title, heading = (150, 40, 450, 60), (50, 90, 100, 100)
    assert _order(h=heading, l=(50, 110, 280, 400), r=(310, 90, 540, 400), t=title) == "thlr"


def test_a_table_across_the_page_separates_the_columns_above_and_below() -> None:
    """Both columns above it come first."""
    above = {"a": (50, 50, 280, 150), "b": (310, 50, 540, 150)}
    below = {"d": (50, 260, 280, 400), "e": (310, 260, 540, 400)}
    assert _order(**below, t=(50, 170, 540, 240), **above) == "abtde"


def test_a_centred_caption_does_not_break_the_columns_below_it() -> None:
    """It is over the gutter."""
    pieces = {"p": (40, 50, 560, 200), "c": (200, 205, 400, 215)}
    assert _order(**pieces, l=(50, 230, 280, 400), r=(310, 230, 540, 400)) == "pclr"


def test_a_picture_beside_text_comes_after_it() -> None:
    """And before the text below both."""
    assert _order(p=(400, 50, 540, 180), t=(50, 55, 390, 180), b=(50, 200, 540, 400)) == "tpb"


def test_columns_of_different_length_are_still_columns() -> None:
    """There is nothing beside the end of the left one."""
    assert _order(a=(50, 50, 280, 600), b=(310, 50, 540, 200), c=(50, 620, 540, 700)) == "abc"


def test_a_heading_below_columns_belongs_to_the_next_band() -> None:
    """It is at the left, like a column."""
    pieces = [
        Piece(Box(50, 50, 280, 200), 9),
        Piece(Box(310, 50, 540, 200), 9),
        Piece(Box(50, 220, 150, 232), 1, is_heading=True),
        Piece(Box(50, 240, 540, 400), 9),
    ]
    assert reading_order(pieces) == [0, 1, 2, 3]


def test_labels_are_read_with_the_text_beside_them() -> None:
    """Headings in the margin, each beside its paragraph."""
    pieces = [Piece(Box(50, top, 120, top + 10), 1) for top in (50, 150, 250)]
    pieces += [Piece(Box(150, top, 500, top + 80), 7) for top in (50, 150, 250)]
    assert reading_order(pieces) == [0, 3, 1, 4, 2, 5]


def test_pieces_that_overlap_a_little_are_still_one_above_the_other() -> None:
    """Boxes of text lines overlap."""
    assert _order(b=(50, 98, 500, 200), a=(50, 50, 500, 101)) == "ab"


def test_a_small_piece_across_the_gutter_does_not_break_the_columns() -> None:
    """For example a wide formula."""
    left = {f"{at}": (50, 50 + 100 * at, 280, 140 + 100 * at) for at in range(4)}
    right = {f"{at + 5}": (310, 90 + 100 * at, 540, 180 + 100 * at) for at in range(4)}
    assert _order(**right, x=(250, 252, 330, 260), **left).replace("x", "") == "01235678"


def test_in_right_to_left_text_the_right_column_comes_first() -> None:
    """As its lines begin at the right."""
    pieces = [Piece(Box(50, 50, 280, 400), 9), Piece(Box(310, 50, 540, 400), 9)]
    assert reading_order(pieces, right_to_left=True) == [1, 0]


def test_every_piece_is_read_once_whatever_its_place() -> None:
    """Also where nothing can be cut."""
    pieces = [
        Piece(Box((at * 37) % 400, (at * 61) % 600, (at * 37) % 400 + 150, (at * 61) % 600 + 90), at % 5)
        for at in range(60)
    ]
    assert sorted(reading_order(pieces)) == list(range(60))
    assert reading_order([]) == []


def test_a_narrow_gutter_separates_columns_too() -> None:
    """On a scan, boxes around lines make it narrow."""
    left, right = (
        (Piece(Box(50, y, 299, y + 90), lines=8) for y in (100, 200)),
        Piece(Box(304, 100, 550, 290), lines=16),
    )
    assert reading_order([right, *left]) == [1, 2, 0]
