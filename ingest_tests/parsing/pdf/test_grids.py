from ingest_assets.parsing.pdf.boxes import Box, bounding_box
from ingest_assets.parsing.pdf.grids import Grid, grid_of
from ingest_assets.parsing.pdf.lines import Word


def _word(left: float, top: float, width: float, text: str) -> Word:
    return Word(Box(left, top, left + width, top + 10), text)


def _across(y: float, left: float, right: float) -> Box:
    return Box(left, y, right, y + 0.5)


def _down(x: float, top: float, bottom: float) -> Box:
    return Box(x, top, x + 0.5, bottom)


def _grid(words: list[Word], lines: list[Box] | None = None) -> Grid:
    return grid_of(words, lines or [], bounding_box([word.box for word in words]))


def _rows(grid: Grid) -> list[list[str]]:
    rows = [["" for _ in range(grid.columns)] for _ in range(grid.rows)]
    for cell in grid.cells:
        for row in range(cell.row, cell.end_row):
            for column in range(cell.column, cell.end_column):
                rows[row][column] = cell.text
    return rows


def test_words_stand_in_the_rows_and_columns_of_the_page() -> None:
    """Alignment may differ between columns."""
    grid = _grid(
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
    grid = _grid([_word(10, 10, 20, "time"), _word(33, 10, 20, "(secs)"), _word(80, 10, 20, "mAP")])
    assert _rows(grid) == [["time (secs)", "mAP"]]


def test_a_narrow_gap_separates_columns_where_other_rows_show_them() -> None:
    """A long entry is close to its neighbour."""
    words = [_word(10, y, 20, "a") for y in (10, 25, 40)] + [_word(100, y, 20, "b") for y in (10, 25, 40)]
    grid = _grid([*words, _word(10, 55, 85, "long"), _word(100, 55, 20, "b")])
    assert _rows(grid)[3] == ["long", "b"]


def test_a_missing_cell_leaves_its_place_empty() -> None:
    """Later cells keep their column."""
    grid = _grid([_word(10, 10, 20, "a"), _word(100, 10, 20, "b"), _word(100, 30, 20, "c")])
    assert _rows(grid) == [["a", "b"], ["", "c"]]


def test_a_heading_over_two_columns_spans_them() -> None:
    """It does not merge them."""
    body = [_word(x, y, 20, f"{x}{y}") for y in (30, 50) for x in (10, 100)]
    grid = _grid([_word(10, 10, 110, "Both"), *body])
    assert grid.columns == 2
    assert (grid.cells[0].column, grid.cells[0].end_column) == (0, 2)


def test_a_partial_line_gives_the_span_of_the_heading_above() -> None:
    """The heading itself may be narrower than one column."""
    words = [_word(200, 10, 20, "Both"), _word(10, 10, 20, "Name")]
    words += [_word(x, 30, 20, text) for x, text in ((110, "simple"), (200, "complex"), (290, "all"))]
    words += [_word(x, y, 20, "1") for y in (50, 65) for x in (10, 110, 200, 290)]
    grid = _grid(words, [_across(25, 105, 315), _across(45, 0, 320)])
    assert _rows(grid)[:2] == [["Name", "Both", "Both", "Both"], ["", "simple", "complex", "all"]]
    assert [cell.is_header for cell in grid.cells if cell.text in ("Both", "simple", "1")][:3] == [
        True,
        True,
        False,
    ]


def test_lines_around_cells_decide_over_white_space() -> None:
    """Text between two lines is one row, even if it is wrapped."""
    lines = [_across(y, 0, 200) for y in (5, 25, 60)] + [_down(x, 5, 60) for x in (0, 100, 200)]
    words = [_word(10, 10, 30, "Hive"), _word(110, 10, 30, "Note")]
    words += [_word(10, 38, 20, "A1"), _word(110, 30, 60, "light and"), _word(110, 45, 60, "hungry")]
    assert _rows(_grid(words, lines)) == [["Hive", "Note"], ["A1", "light and hungry"]]


def test_a_cell_extends_to_the_next_line() -> None:
    """Lines between columns begin below a heading that spans them."""
    lines = [_across(y, 0, 300) for y in (5, 45, 80)]
    lines += [_down(0, 5, 80), _down(100, 5, 80), _down(200, 25, 80), _down(300, 5, 80)]
    words = [
        _word(10, 30, 20, "x"),
        _word(190, 10, 20, "R"),
        _word(140, 30, 20, "base"),
        _word(240, 30, 20, "vcd"),
    ]
    words += [_word(x, y, 10, "1") for y in (50, 65) for x in (40, 140, 240)]
    assert _rows(_grid(words, lines))[0] == ["", "R", "R"]


def test_lines_around_a_table_are_no_columns() -> None:
    """There is no text between a frame and the page's edge."""
    frame = [_down(1, 0, 60), _down(299, 0, 60), _down(150, 0, 60), _across(0, 0, 300), _across(60, 0, 300)]
    words = [_word(x, y, 20, f"{x}") for y in (10, 30) for x in (40, 200)]
    assert grid_of(words, frame, Box(-20, -5, 320, 65)).columns == 2


def test_a_wrapped_line_continues_its_row() -> None:
    """An entry of several lines is one cell; a line that starts a sentence is a new row."""
    words = [_word(10, 10, 40, "Formula"), _word(100, 10, 90, "Accepts a formula and")]
    words += [_word(100, 22, 90, "returns a list of what"), _word(100, 34, 40, "is needed.")]
    words += [_word(10, 46, 40, "Output"), _word(100, 46, 90, "Accepts the result of")]
    words += [_word(100, 58, 30, "the fit.")]
    assert _rows(_grid(words)) == [
        ["Formula", "Accepts a formula and returns a list of what is needed."],
        ["Output", "Accepts the result of the fit."],
    ]


def test_a_superscript_is_no_row() -> None:
    """Superscripts and subscripts are part of their line."""
    words = [_word(x, y, 20, f"{x}") for y in (10, 30, 50) for x in (10, 100)]
    raised = Word(Box(31, 27, 35, 33), "a")
    assert _rows(_grid([*words, raised]))[1] == ["10 a", "100"]


def test_no_word_is_lost_or_doubled_whatever_its_place() -> None:
    """Text in a table must stay findable even where the grid is wrong."""
    words = [_word((at * 37) % 300, (at * 23) % 200, 5 + (at * 13) % 90, f"w{at}") for at in range(120)]
    lines = [_across(y, 0, 300) for y in (40, 90)] + [_down(150, 0, 200), _across(60, 20, 120)]
    grid = _grid(words, lines)
    found = sorted(" ".join(cell.text for cell in grid.cells).split())
    assert found == sorted(word.text for word in words)
    assert all(0 <= cell.column < cell.end_column <= grid.columns for cell in grid.cells)


def test_no_two_cells_share_a_place_whatever_the_words() -> None:
    """Docling would lose the text of one of them."""
    for seed in range(40):
        words = [
            _word((at * (37 + seed)) % 300, (at * (23 + seed)) % 200, 5 + (at * 13) % 90, f"w{at}")
            for at in range(10 + seed)
        ]
        lines = [
            _across(50, 0, 300),
            _across(80, 20 + seed, 160),
            _down(100 + seed, 0, 120),
            _across(120, 0, 300),
        ]
        grid = _grid(words, lines)
        places = [
            (row, column)
            for cell in grid.cells
            for row in range(cell.row, cell.end_row)
            for column in range(cell.column, cell.end_column)
        ]
        assert len(places) == len(set(places))


def test_nothing_gives_an_empty_grid() -> None:
    """A table region may have no text."""
    assert _grid([_word(1, 1, 1, "  ")]) == Grid(rows=0, columns=0, cells=())
