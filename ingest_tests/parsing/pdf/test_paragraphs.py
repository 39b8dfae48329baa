from ingest_assets.parsing.pdf.lines import Line
from ingest_assets.parsing.pdf.paragraphs import paragraphs_of
from ingest_tests.parsing.pdf.elements import line


def _cut(*lines: Line) -> list[list[str]]:
    return [[one.text for one in paragraph] for paragraph in paragraphs_of(lines)]


def _at(number: int, left: float, right: float, text: str) -> Line:
    return line(left, 12 * number, right - left, text)


def test_an_indented_line_begins_a_paragraph() -> None:
    """As in books."""
    lines = (
        _at(0, 10, 210, "one"),
        _at(1, 10, 210, "two"),
        _at(2, 25, 210, "three"),
        _at(3, 10, 210, "four"),
    )
    assert _cut(*lines) == [["one", "two"], ["three", "four"]]


def test_a_line_that_ends_early_ends_a_paragraph() -> None:
    """It had room for the next word."""
    lines = (_at(0, 10, 210, "one"), _at(1, 10, 90, "two"), _at(2, 10, 210, "and three"))
    assert _cut(*lines) == [["one", "two"], ["and three"]]


def test_a_ragged_line_ends_no_paragraph() -> None:
    """The next word was too long for it."""
    long = line(10, 24, 200, "unpronounceable")
    assert _cut(_at(0, 10, 210, "one"), _at(1, 10, 90, "two"), long) == [["one", "two", "unpronounceable"]]


def test_items_are_separate_paragraphs() -> None:
    """With all lines that are indented below the first."""
    lines = (
        _at(0, 10, 210, "• one"),
        _at(1, 20, 210, "more"),
        _at(2, 10, 210, "• two"),
        _at(3, 20, 100, "rest"),
    )
    assert _cut(*lines) == [["• one", "more"], ["• two", "rest"]]


def test_references_are_split_by_their_hanging_indent() -> None:
    """Only first lines start at the margin."""
    lines = tuple(
        _at(at, 10 if at in (0, 3) else 25, 210, text)
        for at, text in enumerate(["Adams", "b", "c", "Brown", "e", "f"])
    )
    assert _cut(*lines) == [["Adams", "b", "c"], ["Brown", "e", "f"]]


def test_a_number_at_the_start_of_a_line_does_not_make_an_item() -> None:
    """A sentence may end in one: `as shown in Table / 2. It is clear that`."""
    texts = ["as shown in Table", "2. It is clear", "that"]
    assert _cut(*(_at(at, 10, 210, text) for at, text in enumerate(texts))) == [texts]


def test_counters_that_follow_each_other_make_items() -> None:
    """Each item begins at the same indentation."""
    lines = tuple(_at(at, 10, 210, f"{at + 1}. item") for at in range(3))
    assert _cut(*lines) == [["1. item"], ["2. item"], ["3. item"]]


def test_centred_lines_stay_together() -> None:
    """A title over two lines."""
    assert _cut(_at(0, 50, 170, "A title"), _at(1, 80, 140, "of it")) == [["A title", "of it"]]


def test_text_from_right_to_left_begins_at_the_right() -> None:
    """Its lines end early on the left."""
    text = "تعتبر البرمجة"
    lines = (_at(0, 10, 210, text), _at(1, 150, 210, text), _at(2, 10, 210, text))
    assert [len(paragraph) for paragraph in paragraphs_of(lines)] == [2, 1]
