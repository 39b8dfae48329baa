from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.rules import Rule, horizontal_rules, vertical_rules


def test_pieces_of_a_line_are_joined() -> None:
    """Programs draw a line cell by cell."""
    pieces = [Box(10, 50, 60, 50.4), Box(61, 50.2, 120, 50.6), Box(200, 50, 260, 50.4)]
    found = [(rule.start, rule.end) for rule in horizontal_rules(pieces)]
    assert found == [(10, 120), (200, 260)]


def test_lines_are_distinguished_by_direction() -> None:
    """And specks are no lines."""
    boxes = [Box(10, 50, 60, 50.4), Box(10, 50, 10.4, 90), Box(5, 5, 7, 6)]
    assert len(horizontal_rules(boxes)) == 1
    assert [(rule.start, rule.end) for rule in vertical_rules(boxes)] == [(50, 90)]


def test_lines_come_in_order() -> None:
    """From top to bottom, from left to right."""
    assert [rule.at for rule in horizontal_rules([Box(0, 90, 50, 90), Box(0, 10, 50, 10)])] == [10, 90]


def test_a_line_covers_a_share_of_an_interval() -> None:
    """Nothing, a part, or all of it."""
    rule = Rule(0, 10, 60)
    assert (rule.covers(0, 100), rule.covers(20, 40), rule.covers(70, 90)) == (0.5, 1.0, 0.0)
