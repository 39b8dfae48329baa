from ingest_assets.parsing.pdf.blocks import Block
from ingest_assets.parsing.pdf.footnotes import footnotes_of
from ingest_tests.parsing.pdf.elements import block, line, prose


def _notes(*blocks: Block) -> list[str]:
    return [blocks[at].text for at in sorted(footnotes_of(800, blocks, body_size=10))]


def test_marked_small_print_at_the_foot_of_a_column_is_a_footnote() -> None:
    """Small print below it is too."""
    first = block(line(50, 700, 150, "1 Weighed in autumn.", size=8))
    second = block(line(50, 712, 150, "2 Weighed in spring.", size=8))
    assert _notes(prose(50, 60, 40), first, second) == [first.text, second.text]


def test_small_print_above_text_is_no_footnote() -> None:
    """It may be a note to a table, or a legend."""
    legend = block(line(50, 600, 150, "a Weighed in autumn.", size=8))
    assert _notes(legend, prose(50, 640, 5)) == []


def test_text_of_full_size_is_no_footnote() -> None:
    """Even if it begins with a number."""
    assert _notes(prose(50, 60, 40), block(line(50, 700, 150, "1 Weighed in autumn."))) == []


def test_small_print_without_a_mark_is_no_footnote() -> None:
    """It may be a licence on the first page."""
    assert _notes(prose(50, 60, 40), block(line(50, 700, 150, "Printed in Ghent.", size=8))) == []


def test_a_page_number_may_be_below_a_footnote() -> None:
    """It is page furniture."""
    note = block(line(50, 700, 150, "∗ Weighed in autumn.", size=8))
    foot = block(line(100, 760, 8, "7"), label="page_footer")
    assert _notes(prose(50, 60, 40), note, foot) == [note.text]
