from ingest_assets.parsing.pdf.direction import is_right_to_left, sort_line

_ARABIC = "تحسين"
_HEBREW = "שלום"


def _ordered(*pieces: tuple[float, str], inside: bool = False) -> list[str]:
    ordered = sort_line(pieces, lambda piece: piece[0], lambda piece: piece[1], in_right_to_left=inside)
    return [text for _, text in ordered]


def test_most_letters_decide_the_direction() -> None:
    """A foreign name does not change the direction of a sentence."""
    assert is_right_to_left(f"{_ARABIC} R")
    assert not is_right_to_left(f"Programming in {_HEBREW}")
    assert not is_right_to_left("1234")


def test_pieces_of_a_western_line_go_from_left_to_right() -> None:
    """In any order of the parser."""
    assert _ordered((50, "world"), (10, "hello")) == ["hello", "world"]


def test_pieces_of_an_arabic_line_go_from_right_to_left() -> None:
    """The rightmost piece is read first."""
    assert _ordered((10, "ج"), (50, "ب"), (90, "ا")) == ["ا", "ب", "ج"]


def test_a_western_phrase_inside_keeps_its_own_order() -> None:
    """`machine learning` keeps its word order."""
    line = ((10, _ARABIC), (40, "deep"), (60, "nets"), (90, _ARABIC + "ي"))
    assert _ordered(*line) == [_ARABIC + "ي", "deep", "nets", _ARABIC]


def test_a_line_of_western_words_in_a_right_to_left_text_is_right_to_left() -> None:
    """One word of the text's script is enough."""
    line = ((10, "learning"), (60, "ب"))
    assert _ordered(*line) == ["learning", "ب"]
    assert _ordered(*line, inside=True) == ["ب", "learning"]
    assert _ordered((10, "deep"), (60, "nets"), inside=True) == ["deep", "nets"]
