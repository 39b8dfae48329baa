from ingest_assets.parsing.pdf.direction import in_reading_order, is_right_to_left

_ARABIC = "تحسين"
_HEBREW = "שלום"


def _ordered(*pieces: tuple[float, str], inside: bool = False) -> list[str]:
    ordered = in_reading_order(
        pieces, lambda piece: piece[0], lambda piece: piece[1], in_right_to_left=inside
    )
    return [text for _, text in ordered]


def test_most_letters_decide_the_direction() -> None:
    """A foreign name does not turn a sentence around."""
    assert is_right_to_left(f"{_ARABIC} R")
    assert not is_right_to_left(f"Programming in {_HEBREW}")
    assert not is_right_to_left("1234")


def test_pieces_of_a_western_line_go_from_left_to_right() -> None:
    """Whatever order the parser found them in."""
    assert _ordered((50, "world"), (10, "hello")) == ["hello", "world"]


def test_pieces_of_an_arabic_line_go_from_right_to_left() -> None:
    """The rightmost is read first."""
    assert _ordered((10, "ج"), (50, "ب"), (90, "ا")) == ["ا", "ب", "ج"]


def test_a_western_phrase_inside_keeps_its_own_order() -> None:
    """`machine learning` is read as written, at its place."""
    line = ((10, _ARABIC), (40, "deep"), (60, "nets"), (90, _ARABIC + "ي"))
    assert _ordered(*line) == [_ARABIC + "ي", "deep", "nets", _ARABIC]


def test_a_line_full_of_western_words_still_belongs_to_its_text() -> None:
    """Few letters of its own script are enough where all the text is in it."""
    line = ((10, "learning"), (60, "ب"))
    assert _ordered(*line) == ["learning", "ب"]
    assert _ordered(*line, inside=True) == ["ب", "learning"]
    assert _ordered((10, "deep"), (60, "nets"), inside=True) == ["deep", "nets"]
