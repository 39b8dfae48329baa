from ingest_assets.parsing.pdf.contents import contents_grid, find_contents
from ingest_assets.parsing.pdf.grids import Grid
from ingest_assets.parsing.pdf.lines import Line
from ingest_tests.parsing.pdf.elements import line


def _rows(grid: Grid) -> list[list[str]]:
    rows = [["", ""] for _ in range(grid.rows)]
    for cell in grid.cells:
        rows[cell.row][cell.column] = cell.text
    return rows


def _dotted(*entries: str) -> list[Line]:
    return [line(50, 100 + 14 * at, 300, f"{entry} . . . . . . {at + 3}") for at, entry in enumerate(entries)]


def test_entries_with_dots_to_their_pages_are_a_table_of_contents() -> None:
    """The dots are dropped."""
    lines = _dotted("1 Bees", "2 Hives", "3 Wax", "4 Honey")
    [found] = find_contents([line(50, 60, 80, "Contents"), *lines])
    assert found == lines
    assert _rows(contents_grid(found)) == [
        ["1 Bees", "3"],
        ["2 Hives", "4"],
        ["3 Wax", "5"],
        ["4 Honey", "6"],
    ]


def test_page_numbers_without_dots_are_found_by_their_common_edge() -> None:
    """They are aligned at the right."""
    lines = []
    for at, entry in enumerate(["Bees", "Hives", "Wax", "Honey"]):
        lines += [line(50, 100 + 14 * at, 80, entry), line(342, 100 + 14 * at, 8, str(at + 1))]
    [found] = find_contents(lines)
    assert _rows(contents_grid(found)) == [["Bees", "1"], ["Hives", "2"], ["Wax", "3"], ["Honey", "4"]]


def test_an_entry_of_two_lines_is_one_row() -> None:
    """Only its last line has a page number."""
    lines = _dotted("1 Bees", "2 Hives", "3 Wax", "4 Honey")
    long = line(50, 156, 250, "5 On the keeping of bees in towns and")
    rest = line(60, 170, 290, "cities . . . . . . 12")
    [found] = find_contents([*lines, long, rest])
    assert _rows(contents_grid(found))[-1] == ["5 On the keeping of bees in towns and cities", "12"]


def test_a_few_numbers_at_the_right_are_no_table_of_contents() -> None:
    """Formulas have numbers there too."""
    lines = [
        line(50, 100, 80, "a = b"),
        line(342, 100, 8, "1"),
        line(50, 130, 80, "c = d"),
        line(342, 130, 8, "2"),
    ]
    assert find_contents(lines) == []


def test_dots_in_a_sentence_are_no_leaders() -> None:
    """They are not followed by a page number."""
    assert find_contents([line(50, 100 + 14 * at, 300, "and so on . . . . and on") for at in range(6)]) == []
