from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import Region
from ingest_assets.parsing.pdf.lines import Line
from ingest_assets.parsing.pdf.runs import runs_of
from ingest_tests.parsing.pdf.elements import BOLD, MONO, line


def _runs(*lines: Line, regions: tuple[Region, ...] = (), rules: tuple[Box, ...] = ()) -> list[list[str]]:
    return [[one.text for one in run] for run in runs_of(lines, regions, rules)]


def _column(left: float, top: float, names: str) -> list[Line]:
    return [line(left, top + 12 * at, 200, name) for at, name in enumerate(names)]


def test_lines_at_an_even_distance_are_one_run() -> None:
    """A paragraph has no gaps."""
    assert _runs(*_column(10, 0, "abcd")) == [["a", "b", "c", "d"]]


def test_a_wider_gap_ends_a_run() -> None:
    """White space separates."""
    assert _runs(*_column(10, 0, "abc"), *_column(10, 45, "de")) == [["a", "b", "c"], ["d", "e"]]


def test_double_spaced_lines_are_one_run_too() -> None:
    """The usual distance is measured on each page."""
    assert _runs(*(line(10, 24 * at, 200, name) for at, name in enumerate("abcd"))) == [["a", "b", "c", "d"]]


def test_columns_are_separate_runs() -> None:
    """Their lines are only at the same heights."""
    assert _runs(*_column(10, 0, "abc"), *_column(230, 0, "xyz")) == [["a", "b", "c"], ["x", "y", "z"]]


def test_a_line_over_two_columns_is_not_the_first_line_of_one() -> None:
    """An abstract over the whole page ends where columns begin."""
    wide = line(10, 0, 420, "wide")
    assert _runs(wide, *_column(10, 12, "ab"), *_column(230, 12, "xy"))[0] == ["wide"]


def test_another_size_or_weight_ends_a_run() -> None:
    """Headings are close to their text."""
    head = line(10, 0, 80, "Head", style=BOLD)
    assert _runs(head, *_column(10, 12, "ab")) == [["Head"], ["a", "b"]]
    large = line(10, 0, 80, "Large", size=14)
    assert _runs(large, *_column(10, 16, "ab")) == [["Large"], ["a", "b"]]


def test_a_heading_of_two_lines_is_one_run() -> None:
    """The detector often finds only the first."""
    lines = (line(10, 0, 80, "Heads and", style=BOLD), line(10, 12, 40, "tails", style=BOLD))
    region = Region("title", 0.9, Box(0, 0, 100, 11))
    assert _runs(*lines, regions=(region,)) == [["Heads and", "tails"]]


def test_indented_program_text_is_a_separate_run() -> None:
    """A long name at the start of a line is part of a sentence."""
    code = line(30, 12, 100, "code()", style=MONO)
    assert _runs(line(10, 0, 200, "a"), code, line(10, 24, 200, "b")) == [["a"], ["code()"], ["b"]]
    name = line(10, 12, 100, "name()", style=MONO)
    assert _runs(line(10, 0, 200, "a"), name, line(10, 24, 200, "b")) == [["a", "name()", "b"]]


def test_a_line_drawn_between_ends_a_run() -> None:
    """It is a separator."""
    rule = Box(10, 23, 210, 23.5)
    assert _runs(*_column(10, 0, "abcd"), rules=(rule,)) == [["a", "b"], ["c", "d"]]


def test_every_line_is_in_exactly_one_run_whatever_its_place() -> None:
    """No text may be lost."""
    lines = [line((at * 37) % 300, (at * 23) % 400, 20 + (at * 7) % 150, f"l{at}") for at in range(150)]
    found = sorted(text for run in _runs(*lines) for text in run)
    assert found == sorted(one.text for one in lines)
