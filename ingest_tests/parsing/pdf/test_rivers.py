from ingest_assets.parsing.pdf.boxes import Box, around
from ingest_assets.parsing.pdf.grids import grid_of
from ingest_assets.parsing.pdf.lines import Word
from ingest_assets.parsing.pdf.rivers import is_figure, rivers
from ingest_tests.parsing.pdf.making import word


def _table(words: list[Word], *lines: Box) -> list[list[str]]:
    grid = grid_of(words, list(lines), around(one.box for one in words))
    rows = [["" for _ in range(grid.columns)] for _ in range(grid.rows)]
    for cell in grid.cells:
        for row in range(cell.row, cell.end_row):
            for column in range(cell.column, cell.end_column):
                rows[row][column] = cell.text
    return rows


def test_words_that_begin_at_one_place_line_after_line_show_a_column() -> None:
    """Justified text fills its column, so the gap to the next is no wider than a space."""
    ends = (96, 97, 94, 97, 96)
    words = []
    for at, end in enumerate(ends):
        y = 10 + 12.0 * at
        words += [word(10, y, 30 + 5 * at, "Word"), word(50 + 3 * at, y, end - 50 - 3 * at, "word")]
        words += [word(100, y, 30, "Other"), word(133, y, 20, "words")]
    [found] = rivers([words[at : at + 4] for at in range(0, len(words), 4)], 10)
    assert (found.left, found.right) == (97, 100)


def test_figures_beside_figures_are_columns_of_their_own() -> None:
    """Narrow tables leave hardly more than a space between them."""
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


def test_figures_are_known() -> None:
    """Also those in brackets, with signs, and what stands for a missing one."""
    assert all(is_figure(text) for text in ("12", "(4,701)", "98.2%", "-3", "$5", "n/a", "–"))
    assert not any(is_figure(text) for text in ("Tier", "k-NN", "x64", "2nd"))
