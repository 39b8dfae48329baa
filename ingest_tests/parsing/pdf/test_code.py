from ingest_assets.parsing.pdf.code import code_text, join_code
from ingest_tests.parsing.pdf.elements import MONO, line


def test_code_keeps_its_lines_and_their_indentation() -> None:
    """They are significant in some languages."""
    lines = [
        line(10, 0, 6 * 12, "def weigh():", style=MONO),
        line(34, 12, 6 * 9, "return kg", style=MONO),
        line(10, 24, 6 * 7, "weigh()", style=MONO),
    ]
    assert code_text(lines) == "def weigh():\n    return kg\nweigh()"


def test_an_empty_line_does_not_end_a_program() -> None:
    """Two parts are one program."""
    upper, lower = [line(10, 0, 60, "a = 1", style=MONO)], [line(10, 24, 60, "b = 2", style=MONO)]
    assert [len(found) for found in join_code([lower, upper])] == [2]


def test_programs_far_apart_or_side_by_side_are_two() -> None:
    """There is text or a gutter between them."""
    upper = [line(10, 0, 60, "a = 1", style=MONO)]
    assert len(join_code([upper, [line(10, 60, 60, "b = 2", style=MONO)]])) == 2
    assert len(join_code([upper, [line(200, 12, 60, "b = 2", style=MONO)]])) == 2
