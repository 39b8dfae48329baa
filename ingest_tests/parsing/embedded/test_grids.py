from ingest_assets.parsing.embedded.grids import Grid, Word, grid_of


def _word(left: float, top: float, width: float, text: str) -> Word:
    return Word(left, top, left + width, top + 10, text)


def _rows(grid: Grid) -> list[list[str]]:
    rows = [["" for _ in range(grid.columns)] for _ in range(grid.rows)]
    for cell in grid.cells:
        rows[cell.row][cell.first_column] = cell.content.text
    return rows


def test_words_stand_in_the_rows_and_columns_of_the_page() -> None:
    """Alignment may differ from column to column."""
    grid = grid_of(
        [
            _word(10, 10, 30, "Hive"),
            _word(100, 10, 30, "Weight"),
            _word(10, 30, 20, "A1"),
            _word(115, 30, 15, "31"),
            _word(10, 50, 40, "B2"),
            _word(110, 51, 20, "290"),
        ]
    )
    assert _rows(grid) == [["Hive", "Weight"], ["A1", "31"], ["B2", "290"]]


def test_words_with_a_space_between_them_are_one_cell() -> None:
    """A cell is a phrase, not a word."""
    grid = grid_of([_word(10, 10, 20, "time"), _word(33, 10, 20, "(secs)"), _word(80, 10, 20, "mAP")])
    assert _rows(grid) == [["time (secs)", "mAP"]]


def test_a_missing_cell_leaves_its_place_empty() -> None:
    """The column of a later cell must not slip to the left."""
    grid = grid_of([_word(10, 10, 20, "a"), _word(100, 10, 20, "b"), _word(100, 30, 20, "c")])
    assert _rows(grid) == [["a", "b"], ["", "c"]]


def test_a_heading_over_two_columns_spans_them() -> None:
    """And it does not glue them together."""
    grid = grid_of([_word(10, 10, 110, "Both"), _word(10, 30, 20, "a"), _word(100, 30, 20, "b")])
    assert grid.columns == 2
    assert (grid.cells[0].first_column, grid.cells[0].end_column) == (0, 2)


def test_no_word_is_lost_or_doubled_whatever_its_place() -> None:
    """Text in a table must stay findable even where the grid is wrong."""
    words = [_word((at * 37) % 300, (at * 23) % 200, 5 + (at * 13) % 90, f"w{at}") for at in range(120)]
    grid = grid_of(words)
    found = sorted(" ".join(cell.content.text for cell in grid.cells).split())
    assert found == sorted(word.text for word in words)
    assert all(0 <= cell.first_column < cell.end_column <= grid.columns for cell in grid.cells)


def test_nothing_gives_an_empty_grid() -> None:
    """A table region may hold no text at all."""
    assert grid_of([_word(1, 1, 1, "  ")]) == Grid(rows=0, columns=0, cells=())
