from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.lines import Word, WordIndex, join_pieces, styled_line
from ingest_tests.parsing.pdf.elements import line, word


def test_a_line_has_the_style_of_most_of_its_letters() -> None:
    """And the height of that font, despite superscripts and subscripts."""
    piece = Word(Box(10, 90, 200, 112), "Bees 2 forage in spring")
    words = [
        word(10, 100, 40, "Bees", font="/Times-Bold"),
        word(52, 90, 5, "2", height=6, font="/Times-Roman"),
        word(60, 100, 140, "forage in spring", font="/Times-Roman"),
    ]
    styled = styled_line(piece, words, 7)
    assert (styled.box.top, styled.box.bottom, styled.size) == (100, 110, 10)
    assert styled.first.bold == 1.0
    assert styled.last.bold == 0.0
    assert 0 < styled.style.bold < 0.5
    assert (styled.first_width, styled.order) == (40, 7)


def test_a_character_of_a_symbol_font_becomes_a_bullet() -> None:
    """Such fonts have bullets at other characters' codes."""
    piece = Word(Box(10, 0, 200, 10), "∞ Weigh every hive")
    words = [word(10, 0, 5, "∞", font="/AAAAAH+SymbolMT"), word(30, 0, 170, "Weigh every hive")]
    assert styled_line(piece, words, 0).text == "• Weigh every hive"
    private = Word(Box(10, 0, 200, 10), "\uf0b7 Weigh every hive")
    assert styled_line(private, [], 0).text == "• Weigh every hive"


def test_a_character_that_is_no_bullet_stays() -> None:
    """Formulas use such fonts too."""
    piece = Word(Box(10, 0, 60, 10), "∑x")
    assert styled_line(piece, [word(10, 0, 5, "∑", font="/Symbol")], 0).text == "∑x"


def test_pieces_side_by_side_are_one_line() -> None:
    """A gap is a space; pieces that touch are one word."""
    assert join_pieces([line(60, 0, 30, "spring"), line(10, 0, 40, "in")]).text == "in spring"
    assert join_pieces([line(10, 0, 40, "work"), line(50, 0, 5, ".")]).text == "work."


def test_scripts_of_different_direction_are_different_words() -> None:
    """At any distance."""
    pieces = [line(10, 0, 30, "Python"), line(40, 0, 30, "من")]
    assert join_pieces(pieces, in_right_to_left=True).text == "من Python"


def test_words_are_found_by_their_centre() -> None:
    """Boxes of two lines may overlap slightly."""
    words = WordIndex([word(10, 0, 20, "above"), word(10, 11, 20, "below"), word(300, 0, 20, "beside")])
    assert [found.text for found in words.within(Box(0, 0, 100, 10))] == ["above"]
