from ingest_assets.parsing.pdf.code import code_text, joined_code
from ingest_tests.parsing.pdf.making import MONO, line


def test_code_keeps_its_lines_and_their_indentation() -> None:
    """In some languages they are part of the program."""
    lines = [
        line(10, 0, 6 * 12, "def weigh():", style=MONO),
        line(34, 12, 6 * 9, "return kg", style=MONO),
        line(10, 24, 6 * 7, "weigh()", style=MONO),
    ]
    assert code_text(lines) == "def weigh():\n    return kg\nweigh()"


def test_an_empty_line_does_not_end_a_program() -> None:
    """Two parts, one program."""
    upper, lower = [line(10, 0, 60, "a = 1", style=MONO)], [line(10, 24, 60, "b = 2", style=MONO)]
    assert [len(found) for found in joined_code([lower, upper])] == [2]


def test_programs_far_apart_or_side_by_side_are_two() -> None:
    """Text stands between them, or a gutter."""
    upper = [line(10, 0, 60, "a = 1", style=MONO)]
    assert len(joined_code([upper, [line(10, 60, 60, "b = 2", style=MONO)]])) == 2
    assert len(joined_code([upper, [line(200, 12, 60, "b = 2", style=MONO)]])) == 2
