from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.second_look import (
    fonts_of,
    has_nameless_fonts,
    is_nameless,
    picture_of,
    with_names,
)
from ingest_tests.parsing.pdf.making import word
from ingest_tests.parsing.pdf.papers import Sheet, paper


def _page(sheet: Sheet) -> None:
    sheet.text(50, 100, "def weigh(hive):", "Courier")
    sheet.text(50, 200, "Winter feeding", "Times-Bold")


def test_fonts_that_a_pdf_does_not_bring_along_still_have_names() -> None:
    """With the place of each piece of text."""
    [(code, first), (heading, second)] = fonts_of(paper(_page), 1)
    assert (first, second) == ("Courier", "Times-Bold")
    assert code.bottom < heading.top


def test_only_words_without_a_name_get_one() -> None:
    """What the parser says of a font is believed."""
    fonts = [(Box(0, 0, 100, 20), "Courier")]
    named, nameless = word(10, 5, 20, "a", font="/CMR10"), word(40, 5, 20, "b", font="/F2")
    assert [one.font for one in with_names([named, nameless], fonts)] == ["/CMR10", "Courier"]
    assert has_nameless_fonts([named, nameless])
    assert not has_nameless_fonts([named])


def test_a_pages_own_names_for_fonts_are_no_names() -> None:
    """They say nothing about the font."""
    assert all(map(is_nameless, ("/F2", "/TT1", "/C2_0", "", "/null")))
    assert not any(map(is_nameless, ("/CMR10", "/Helvetica", "/ABCDEF+Times-Roman", "/F2-Bold")))


def test_what_pdfium_cannot_read_has_neither_fonts_nor_a_picture() -> None:
    """Nor has a page that is not there."""
    assert fonts_of(b"no PDF", 1) == []
    assert picture_of(b"no PDF", 1, 1.0) is None
    assert picture_of(paper(_page), 2, 1.0) is None


def test_a_page_can_be_drawn() -> None:
    """At the scale that is asked for."""
    assert picture_of(paper(_page), 1, 2.0).size == (1190, 1684)
