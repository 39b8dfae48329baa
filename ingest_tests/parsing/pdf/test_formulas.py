from ingest_assets.parsing.pdf.boxes import around
from ingest_assets.parsing.pdf.formulas import completed, gathered, is_equation_number, is_formula
from ingest_assets.parsing.pdf.lines import Line, Style
from ingest_tests.parsing.pdf.making import line

_MATH = Style(math=0.6)


def _piece(one: Line) -> tuple[object, tuple[Line, ...]]:
    return around([one.box]), (one,)


def test_signs_of_formulas_and_hardly_a_word_are_a_formula() -> None:
    """Unless there is a sentence around them."""
    assert is_formula([line(0, 0, 60, "a2 + b2", style=_MATH)], vote=0.0)
    assert is_formula([line(0, 0, 60, "E = mc2", style=Style(math=0.1))], vote=0.0)
    assert is_formula([line(0, 0, 60, "E = mc2")], vote=0.8)
    assert not is_formula([line(0, 0, 60, "E = mc2")], vote=0.0)
    assert not is_formula([line(0, 0, 200, "where alpha denotes the angle of it", style=_MATH)], vote=0.9)


def test_pieces_that_touch_are_one_formula() -> None:
    """Fractions and sums come in many pieces."""
    pieces = [_piece(line(10, 0, 20, "∑", style=_MATH)), _piece(line(35, 5, 30, "x+1", style=_MATH))]
    far = _piece(line(10, 100, 30, "y", style=_MATH))
    found = gathered([*pieces, far])  # type: ignore[list-item]
    assert sorted(len(lines) for _, lines in found) == [1, 2]


def test_a_number_beside_a_formula_belongs_to_it() -> None:
    """And stands at its end."""
    formula = gathered([_piece(line(100, 0, 60, "a + b", style=_MATH))])  # type: ignore[list-item]
    number, text = line(300, 0, 15, "(1)"), line(10, 40, 200, "where a is the number of bees")
    whole, rest = completed(formula, [(number,), (text,)])
    assert [one.text for one in whole[0][1]] == ["a + b", "(1)"]
    assert rest == [(text,)]


def test_scraps_inside_a_formula_belong_to_it() -> None:
    """Limits of a sum are set in text type."""
    formula = gathered([_piece(line(100, 0, 60, "a + b", style=_MATH))])  # type: ignore[list-item]
    whole, rest = completed(formula, [(line(105, 12, 15, "i=0", size=6),)])
    assert len(whole[0][1]) == 2
    assert rest == []


def test_equation_numbers_are_known() -> None:
    """They stand in brackets."""
    assert all(map(is_equation_number, ("(1)", "(A1)", "(2.3)", "(4a)")))
    assert not any(map(is_equation_number, ("1", "(see)", "(1) where")))
