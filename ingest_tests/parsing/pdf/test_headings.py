from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.headings import body_of, headings_of
from ingest_assets.parsing.pdf.lines import Style
from ingest_tests.parsing.pdf.elements import BOLD, ITALIC, block, line, prose


def _headings(*blocks: Block, page: int = 1) -> list[str]:
    """Headings found on the second page, where no title or authors are expected."""
    pages = [(800.0, [prose(50, 100, 10)]) for _ in range(page)] + [(800.0, list(blocks))]
    found = headings_of(pages, set(), body_of(pages))
    return [blocks[at].text for number, at in sorted(found) if number == page]


def _between_text(head: Block) -> list[Block]:
    below = head.box.bottom + 6
    return [prose(50, 100, 5), head, prose(50, below, 10)]


def test_larger_type_makes_a_heading() -> None:
    """If it is short."""
    assert _headings(*_between_text(block(line(50, 180, 100, "Winter feeding", size=14)))) == [
        "Winter feeding"
    ]


def test_bold_type_makes_a_heading() -> None:
    """At the size of the text."""
    assert _headings(*_between_text(block(line(50, 180, 100, "Winter feeding", style=BOLD)))) == [
        "Winter feeding"
    ]


def test_a_bold_sentence_is_no_heading() -> None:
    """It ends with a full stop, or is long."""
    warning = block(line(50, 180, 190, "Never open a hive in the rain.", style=BOLD))
    assert _headings(*_between_text(warning)) == []
    long = block(
        *(line(50, 180 + 12 * at, 200, "bold words that fill a line", style=BOLD) for at in range(6))
    )
    assert _headings(*_between_text(long)) == []


def test_a_section_number_makes_a_heading_in_plain_type() -> None:
    """`3.2 Figures` above some text."""
    assert _headings(*_between_text(block(line(50, 180, 60, "3.2 Figures")))) == ["3.2 Figures"]


def test_italics_make_a_heading_where_text_follows_closely() -> None:
    """With white space above and capitals."""
    head = block(line(50, 180, 100, "Elastic Stop Nut", style=ITALIC))
    assert _headings(*_between_text(head)) == ["Elastic Stop Nut"]


def test_capitals_make_a_heading_with_the_detectors_help() -> None:
    """Each alone is not enough."""
    plain = block(line(50, 180, 100, "ACKNOWLEDGMENTS TO ALL"), votes=(("title", 0.9),))
    assert _headings(*_between_text(plain)) == ["ACKNOWLEDGMENTS TO ALL"]


def test_items_and_captions_are_no_headings() -> None:
    """Even in bold."""
    bullet = block(line(50, 180, 100, "• Winter feeding", style=BOLD), label="list_item")
    assert _headings(*_between_text(bullet)) == []
    caption = block(line(50, 180, 100, "Figure 2: Hives", style=BOLD), label="caption")
    assert _headings(*_between_text(caption)) == []


def test_a_list_of_names_in_larger_type_is_no_list_of_headings() -> None:
    """There is no text between them."""
    names = [block(line(50, 200 + 16 * at, 90, f"Ada Lovelace {'abcdef'[at]}", size=12)) for at in range(6)]
    assert _headings(prose(50, 100, 5), *names) == []


def test_names_of_authors_on_the_first_page_are_no_headings() -> None:
    """They are larger than the text, but not the largest."""
    title = block(line(150, 40, 200, "Of Bees", size=18))
    author = block(line(180, 70, 100, "Ada Lovelace", size=12))
    assert _headings(title, author, prose(50, 110, 20), page=0) == ["Of Bees"]


def test_small_print_is_no_heading() -> None:
    """Even in bold capitals."""
    small = block(line(50, 180, 100, "TERMS AND CONDITIONS", size=7, style=Style(bold=0.5)))
    assert _headings(*_between_text(small)) == []


def test_numbers_and_signs_are_no_headings() -> None:
    """A heading has words."""
    assert _headings(*_between_text(block(line(50, 180, 60, "12 345 - 67", size=16)))) == []


def test_small_capitals_make_a_heading() -> None:
    """They are smaller than the text and in its font; paragraphs around them are no headings."""
    head = block(line(50, 180, 90, "I. INTRODUCTION", size=8))
    assert _headings(*_between_text(head)) == ["I. INTRODUCTION"]


def test_a_common_name_counts_after_a_number_too() -> None:
    """`Conclusion` is one with and without a number."""
    head = block(line(50, 180, 90, "V. Conclusion", style=ITALIC))
    assert _headings(*_between_text(head)) == ["V. Conclusion"]
