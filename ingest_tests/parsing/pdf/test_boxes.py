from ingest_assets.parsing.pdf.boxes import Box, bounding_box

_BOX = Box(10, 20, 110, 70)


def test_boxes_share_width_and_height_or_have_a_gap() -> None:
    """A gap is a negative overlap."""
    assert _BOX.shared_width(Box(60, 0, 200, 10)) == 50
    assert _BOX.shared_width(Box(120, 0, 200, 10)) == -10
    assert _BOX.shared_height(Box(0, 75, 10, 90)) == -5


def test_the_share_inside_another_box() -> None:
    """Nothing, a part, everything; a line without area is inside or not."""
    assert _BOX.share_in(Box(60, 20, 200, 70)) == 0.5
    assert _BOX.share_in(Box(0, 0, 200, 200)) == 1.0
    assert _BOX.share_in(Box(200, 0, 300, 10)) == 0.0
    assert Box(20, 30, 60, 30).share_in(_BOX) == 1.0
    assert Box(20, 90, 60, 90).share_in(_BOX) == 0.0


def test_a_box_contains_the_centre_of_a_box_inside() -> None:
    """Even if that box extends beyond it."""
    assert _BOX.contains_middle_of(Box(50, 40, 150, 50))
    assert not _BOX.contains_middle_of(Box(90, 40, 190, 50))


def test_the_bounding_box_contains_all_boxes() -> None:
    """And is no larger than necessary."""
    assert bounding_box([_BOX, Box(0, 30, 50, 90)]) == Box(0, 20, 110, 90)
    assert _BOX.expanded(1, 2) == Box(9, 18, 111, 72)


def test_a_line_without_area_is_covered_by_its_length() -> None:
    """Touching a box is not overlapping it."""
    line = Box(90, 50, 190, 50)
    assert line.share_in(Box(0, 0, 100, 100)) == 0.1
    assert line.share_in(Box(0, 0, 200, 100)) == 1.0
