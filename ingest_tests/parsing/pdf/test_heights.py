from dataclasses import replace

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.heights import evened
from ingest_assets.parsing.pdf.lines import Word
from ingest_tests.parsing.pdf.making import word

_TIGHT = "/Tight-Regular"


def _inked(left: float, text: str, above: float, below: float) -> Word:
    """A word on the line at height 100 in a font of size 10, with a box just around its ink."""
    box = Box(left, 100 - 10 * above, left + 5 * len(text), 100 + 10 * below)
    return Word(box, text, _TIGHT)


def test_boxes_around_the_ink_become_as_tall_as_the_font() -> None:
    """`on` and `only` are the same size."""
    words = [_inked(0, "on", 0.46, 0), _inked(20, "simply", 0.68, 0.22), _inked(60, "hello", 0.68, 0)]
    heights = [round(found.box.height, 2) for found in evened(words)]
    assert heights == [9.0, 9.0, 9.0]
    assert {round(found.box.bottom, 2) for found in evened(words)} == {102.2}


def test_boxes_as_tall_as_the_font_stay_as_they_are() -> None:
    """Most fonts come with such boxes."""
    words = [
        word(at * 40, 0, 5.0 * len(text), text) for at, text in enumerate(["on", "simply", "hello", "some"])
    ]
    assert evened(words) == words


def test_a_font_that_claims_to_be_taller_than_it_is_shrinks() -> None:
    """Its narrow letters tell."""
    words = [word(at * 40, 0, 4.5 * 5, "hello", height=16) for at in range(4)]
    found = evened(words)
    assert all(one.box.height < 10 for one in found)
    assert found[0].box.middle_y == 8


def test_blank_words_are_dropped() -> None:
    """There is nothing to see of them."""
    kept = word(0, 0, 20, "bees")
    assert evened([kept, replace(kept, text="  ")]) == [kept]


def test_fonts_that_claim_to_be_low_are_made_as_tall_as_they_are() -> None:
    """Their lines would stand too far apart to be one heading."""
    words = [
        word(at * 100, 50, 16.0 * len(text), text, height=12) for at, text in enumerate(["some", "type"])
    ]
    heights = [found.box.height for found in evened(words)]
    assert all(25 < height < 40 for height in heights)


def test_monospaced_type_is_as_wide_as_it_likes() -> None:
    """Its letters are wider than others of the same size."""
    words = [
        word(at * 100, 50, 10.0 * len(text), text, height=10, font="/DejaVuSansMono")
        for at, text in enumerate(["some", "type"])
    ]
    assert evened(words) == words
