from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.grids import grid_of
from ingest_assets.parsing.pdf.lines import Word
from ingest_assets.parsing.pdf.rivers import find_rivers, is_number
from ingest_tests.parsing.pdf.elements import word


def _table(words: list[Word], *lines: Box) -> list[list[str]]:
    grid = grid_of(words, list(lines), bounding_box(one.box for one in words))
    rows = [["" for _ in range(grid.columns)] for _ in range(grid.rows)]
    for cell in grid.cells:
        for row in range(cell.row, cell.end_row):
            for column in range(cell.column, cell.end_column):
                rows[row][column] = cell.text
    return rows


def test_aligned_words_in_many_lines_are_a_column() -> None:
    """In justified columns, the gap is no wider than a space."""
    ends = (96, 97, 94, 97, 96)
    words = []
    for at, end in enumerate(ends):
        y = 10 + 12.0 * at
        words += [word(10, y, 30 + 5 * at, "Word"), word(50 + 3 * at, y, end - 50 - 3 * at, "word")]
        words += [word(100, y, 30, "Other"), word(133, y, 20, "words")]
    [found] = find_rivers([words[at : at + 4] for at in range(0, len(words), 4)], 10)
    assert (found.left, found.right) == (97, 100)


def test_numbers_beside_numbers_are_columns() -> None:
    """The gaps of narrow tables are hardly wider than a space."""
    words = [word(10, y, 30, "Model") for y in (10, 24, 38, 52)]
    words += [word(60 + 24 * at, y, 20, "57.3") for y in (10, 24, 38, 52) for at in range(3)]
    assert _table(words) == [["Model", "57.3", "57.3", "57.3"]] * 4


def test_a_counter_is_no_column() -> None:
    """`1.` is equally wide in every row."""
    words = []
    for at in range(5):
        y = 10 + 14.0 * at
        words += [word(10, y, 8, f"{at + 1}."), word(21, y, 40 + 3 * at, "Entry"), word(120, y, 20, "yes")]
    assert [row[0] for row in _table(words)] == [f"{at + 1}. Entry" for at in range(5)]


def test_numbers_are_recognized() -> None:
    """Also in brackets, with signs, and placeholders of missing ones."""
    assert all(is_number(text) for text in ("12", "(4,701)", "98.2%", "-3", "$5", "n/a", "–"))
    assert not any(is_number(text) for text in ("Tier", "k-NN", "x64", "2nd"))
