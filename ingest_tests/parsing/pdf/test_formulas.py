from ingest_assets.parsing.pdf.boxes import bounding_box
from ingest_assets.parsing.pdf.formulas import (
    complete_formulas,
    is_equation_number,
    is_formula,
    merge_formula_pieces,
)
from ingest_assets.parsing.pdf.lines import Line, Style
from ingest_tests.parsing.pdf.elements import line

_MATH = Style(math=0.6)


def _piece(one: Line) -> tuple[object, tuple[Line, ...]]:
    return bounding_box([one.box]), (one,)


def test_characters_of_math_fonts_with_few_words_are_a_formula() -> None:
    """In a sentence they are not."""
    assert is_formula([line(0, 0, 60, "a2 + b2", style=_MATH)], vote=0.0)
    assert is_formula([line(0, 0, 60, "E = mc2", style=Style(math=0.1))], vote=0.0)
    assert is_formula([line(0, 0, 60, "E = mc2")], vote=0.8)
    assert not is_formula([line(0, 0, 60, "E = mc2")], vote=0.0)
    assert not is_formula([line(0, 0, 200, "where alpha denotes the angle of it", style=_MATH)], vote=0.9)


def test_pieces_that_touch_are_one_formula() -> None:
    """Fractions and sums consist of many pieces."""
    pieces = [_piece(line(10, 0, 20, "∑", style=_MATH)), _piece(line(35, 5, 30, "x+1", style=_MATH))]
    far = _piece(line(10, 100, 30, "y", style=_MATH))
    found = merge_formula_pieces([*pieces, far])  # type: ignore[list-item]
    assert sorted(len(lines) for _, lines in found) == [1, 2]


def test_a_number_beside_a_formula_belongs_to_it() -> None:
    """It comes last."""
    formula = merge_formula_pieces([_piece(line(100, 0, 60, "a + b", style=_MATH))])  # type: ignore[list-item]
    number, text = line(300, 0, 15, "(1)"), line(10, 40, 200, "where a is the number of bees")
    whole, rest = complete_formulas(formula, [(number,), (text,)])
    assert [one.text for one in whole[0][1]] == ["a + b", "(1)"]
    assert rest == [(text,)]


def test_scraps_inside_a_formula_belong_to_it() -> None:
    """Limits of a sum may be in a text font."""
    formula = merge_formula_pieces([_piece(line(100, 0, 60, "a + b", style=_MATH))])  # type: ignore[list-item]
    whole, rest = complete_formulas(formula, [(line(105, 12, 15, "i=0", size=6),)])
    assert len(whole[0][1]) == 2
    assert rest == []


def test_equation_numbers_are_recognized() -> None:
    """They are in brackets."""
    assert all(map(is_equation_number, ("(1)", "(A1)", "(2.3)", "(4a)")))
    assert not any(map(is_equation_number, ("1", "(see)", "(1) where")))
