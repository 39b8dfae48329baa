from dataclasses import replace

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.heights import normalize_heights
from ingest_assets.parsing.pdf.lines import Word
from ingest_tests.parsing.pdf.elements import word

_TIGHT = "/Tight-Regular"


def _inked(left: float, text: str, above: float, below: float) -> Word:
    """A word with its baseline at height 100 in a font of size 10, with a box around its ink."""
    box = Box(left, 100 - 10 * above, left + 5 * len(text), 100 + 10 * below)
    return Word(box, text, _TIGHT)


def test_boxes_around_the_ink_become_as_tall_as_the_font() -> None:
    """`on` and `only` are the same size."""
    words = [_inked(0, "on", 0.46, 0), _inked(20, "simply", 0.68, 0.22), _inked(60, "hello", 0.68, 0)]
    heights = [round(found.box.height, 2) for found in normalize_heights(words)]
    assert heights == [9.0, 9.0, 9.0]
    assert {round(found.box.bottom, 2) for found in normalize_heights(words)} == {102.2}


def test_boxes_as_tall_as_the_font_stay_as_they_are() -> None:
    """Most fonts have such boxes."""
    words = [
        word(at * 40, 0, 5.0 * len(text), text) for at, text in enumerate(["on", "simply", "hello", "some"])
    ]
    assert normalize_heights(words) == words


def test_a_font_with_too_tall_boxes_is_corrected() -> None:
    """Its letters are too narrow for that height."""
    words = [word(at * 40, 0, 4.5 * 5, "hello", height=16) for at in range(4)]
    found = normalize_heights(words)
    assert all(one.box.height < 10 for one in found)
    assert found[0].box.middle_y == 8


def test_blank_words_are_dropped() -> None:
    """They are not visible."""
    kept = word(0, 0, 20, "bees")
    assert normalize_heights([kept, replace(kept, text="  ")]) == [kept]


def test_a_font_with_too_low_boxes_is_corrected() -> None:
    """Else its lines are too far apart to be one heading."""
    words = [
        word(at * 100, 50, 16.0 * len(text), text, height=12) for at, text in enumerate(["some", "type"])
    ]
    heights = [found.box.height for found in normalize_heights(words)]
    assert all(25 < height < 40 for height in heights)


def test_monospaced_type_may_be_wide() -> None:
    """Its letters are wider than others of the same size."""
    words = [
        word(at * 100, 50, 10.0 * len(text), text, height=10, font="/DejaVuSansMono")
        for at, text in enumerate(["some", "type"])
    ]
    assert normalize_heights(words) == words
