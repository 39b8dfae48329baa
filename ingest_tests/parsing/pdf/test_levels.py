from ingest_assets.parsing.pdf.levels import Heading, levels_of


def test_dotted_numbers_say_how_deep_a_heading_lies() -> None:
    """Whatever it looks like."""
    texts = ["1 Introduction", "2 Methods", "2.1 Hives", "2.1.1 Frames", "3 Results"]
    assert levels_of([Heading(text, 10) for text in texts]) == [1, 1, 2, 3, 1]


def test_a_title_stands_above_numbered_headings() -> None:
    """It is larger and comes first."""
    headings = [Heading("Of Bees", 18), Heading("1 Introduction", 12), Heading("1.1 Hives", 12)]
    assert levels_of(headings) == [1, 2, 3]


def test_headings_without_a_number_lie_as_deep_as_those_they_look_like() -> None:
    """`References` is a section like the others."""
    headings = [Heading("1 Introduction", 12, bold=True), Heading("1.1 Hives", 10, bold=True)]
    assert levels_of([*headings, Heading("References", 12, bold=True)]) == [1, 2, 1]


def test_sizes_decide_where_there_are_no_numbers() -> None:
    """Larger is higher; sizes that differ by a hair are the same."""
    sizes = [20, 14, 11, 14.2, 11]
    assert levels_of([Heading(f"Heading {'abcde'[at]}", size) for at, size in enumerate(sizes)]) == [
        1,
        2,
        3,
        2,
        3,
    ]


def test_other_kinds_of_numbers_nest_in_the_order_they_appear() -> None:
    """Physicists write I, A, 1."""
    headings = [
        Heading("I. FIRST", 10, bold=True, capitals=True),
        Heading("A. Second", 10, bold=True),
        Heading("1. Third", 10),
        Heading("B. Second", 10, bold=True),
        Heading("II. FIRST", 10, bold=True, capitals=True),
    ]
    assert levels_of(headings) == [1, 2, 3, 2, 1]


def test_an_appendix_lies_as_high_as_the_sections_it_looks_like() -> None:
    """Its letter is another kind of number."""
    headings = [
        Heading("1 Introduction", 12, bold=True),
        Heading("A Frames", 12, bold=True),
        Heading("A.1 Wax", 10),
    ]
    assert levels_of(headings) == [1, 1, 2]


def test_the_first_heading_is_never_deeper_than_the_second() -> None:
    """A small title is still a title."""
    assert levels_of([Heading("Of Bees", 10, bold=True), Heading("Hives", 12, bold=True)]) == [1, 1]


def test_no_headings_have_no_levels() -> None:
    """A letter has none."""
    assert levels_of([]) == []
