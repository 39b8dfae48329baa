from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.pdfium import (
    has_unnamed_fonts,
    is_placeholder,
    page_fonts,
    render_page,
    with_font_names,
)
from ingest_tests.parsing.pdf.elements import word
from ingest_tests.parsing.pdf.papers import Sheet, paper


def _page(sheet: Sheet) -> None:
    sheet.text(50, 100, "def weigh(hive):", "Courier")
    sheet.text(50, 200, "Winter feeding", "Times-Bold")


def test_fonts_that_are_not_embedded_have_names() -> None:
    """With the box of each piece of text."""
    [(code, first), (heading, second)] = page_fonts(paper(_page), 1)
    assert (first, second) == ("Courier", "Times-Bold")
    assert code.bottom < heading.top


def test_only_words_without_a_font_name_get_one() -> None:
    """The parser's font names have precedence."""
    fonts = [(Box(0, 0, 100, 20), "Courier")]
    named, nameless = word(10, 5, 20, "a", font="/CMR10"), word(40, 5, 20, "b", font="/F2")
    assert [one.font for one in with_font_names([named, nameless], fonts)] == ["/CMR10", "Courier"]
    assert has_unnamed_fonts([named, nameless])
    assert not has_unnamed_fonts([named])


def test_resource_keys_are_no_font_names() -> None:
    """They do not describe the font."""
    assert all(map(is_placeholder, ("/F2", "/TT1", "/C2_0", "", "/null")))
    assert not any(map(is_placeholder, ("/CMR10", "/Helvetica", "/ABCDEF+Times-Roman", "/F2-Bold")))


def test_an_unreadable_page_has_neither_fonts_nor_an_image() -> None:
    """Nor has a page that does not exist."""
    assert page_fonts(b"no PDF", 1) == []
    assert render_page(b"no PDF", 1, 1.0) is None
    assert render_page(paper(_page), 2, 1.0) is None


def test_a_page_can_be_rendered() -> None:
    """At the requested scale."""
    assert render_page(paper(_page), 1, 2.0).size == (1190, 1684)
