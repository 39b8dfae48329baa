from ingest_assets.parsing.pdf.document import heading_levels, label_blocks, reading_orders
from ingest_tests.parsing.pdf.elements import BOLD, block, line, prose


def test_the_document_as_a_whole_decides_over_labels() -> None:
    """Running heads, headings and footnotes are relabelled; other labels stay."""
    pages = [
        (
            800.0,
            [
                block(line(50, 20, 200, f"Of bees {number}", size=9)),
                block(line(50, 80, 60, f"{2 * number + 1} Hives", style=BOLD)),
                prose(50, 100, 30),
                block(line(50, 600, 100, "• an item"), label="list_item"),
                block(line(50, 700, 150, f"1 A note on {('wax', 'honey')[number - 1]}.", size=8)),
            ],
        )
        for number in (1, 2)
    ]
    for blocks in label_blocks(pages):
        assert [one.label for one in blocks] == [
            "page_header",
            "section_header",
            "text",
            "list_item",
            "footnote",
        ]


def test_headers_come_first_and_footers_last() -> None:
    """The body of a page is read between them."""
    foot = block(line(50, 10, 20, "7"), label="page_footer")
    head = block(line(50, 700, 20, "Bees"), label="page_header")
    assert reading_orders([[foot, prose(50, 100, 5), head]]) == [[2, 1, 0]]


def test_levels_are_those_of_the_headings_only() -> None:
    """In their order."""
    head, deeper = (
        block(line(0, 0, 9, "1 A"), label="section_header"),
        block(line(0, 0, 9, "1.1 B"), label="section_header"),
    )
    assert heading_levels([head, prose(0, 20, 2), deeper]) == [1, 2]
