from ingest_assets.parsing.pdf.levels import Heading, levels_of


def test_dotted_numbers_give_the_level() -> None:
    """Regardless of the heading's look."""
    texts = ["1 Introduction", "2 Methods", "2.1 Hives", "2.1.1 Frames", "3 Results"]
    assert levels_of([Heading(text, 10) for text in texts]) == [1, 1, 2, 3, 1]


def test_a_title_is_above_numbered_headings() -> None:
    """It is larger and comes first."""
    headings = [Heading("Of Bees", 18), Heading("1 Introduction", 12), Heading("1.1 Hives", 12)]
    assert levels_of(headings) == [1, 2, 3]


def test_headings_without_a_number_have_the_level_of_similar_ones() -> None:
    """`References` is a section like the others."""
    headings = [Heading("1 Introduction", 12, bold=True), Heading("1.1 Hives", 10, bold=True)]
    assert levels_of([*headings, Heading("References", 12, bold=True)]) == [1, 2, 1]


def test_sizes_decide_where_there_are_no_numbers() -> None:
    """Larger is higher; nearly equal sizes are equal."""
    sizes = [20, 14, 11, 14.2, 11]
    assert levels_of([Heading(f"Heading {'abcde'[at]}", size) for at, size in enumerate(sizes)]) == [
        1,
        2,
        3,
        2,
        3,
    ]


def test_other_kinds_of_numbers_nest_in_the_order_they_appear() -> None:
    """Physics papers use I, A, 1."""
    headings = [
        Heading("I. FIRST", 10, bold=True, capitals=True),
        Heading("A. Second", 10, bold=True),
        Heading("1. Third", 10),
        Heading("B. Second", 10, bold=True),
        Heading("II. FIRST", 10, bold=True, capitals=True),
    ]
    assert levels_of(headings) == [1, 2, 3, 2, 1]


def test_an_appendix_has_the_level_of_similar_sections() -> None:
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
