from dataclasses import replace

from ingest_assets.parsing.pdf.boxes import Box
from ingest_assets.parsing.pdf.content import PageContent, Region
from ingest_assets.parsing.pdf.zones import zones_of
from ingest_tests.parsing.pdf.elements import word

_AREA = Box(100, 100, 400, 300)


def _page(label: str, score: float = 0.9, **held: object) -> PageContent:
    empty = PageContent(600, 800, regions=(Region(label, score, _AREA),))
    return replace(empty, **held)  # type: ignore[arg-type]


def _labels(page: PageContent) -> list[str]:
    return [zone.label for zone in zones_of(page)]


def test_a_picture_needs_a_bitmap_or_a_drawing() -> None:
    """The detector labels large formulas as pictures."""
    assert _labels(_page("figure")) == []
    assert _labels(_page("figure", bitmaps=(Box(110, 110, 390, 290),))) == ["picture"]
    assert _labels(_page("figure", drawings=(Box(110, 110, 300, 290),))) == ["picture"]


def test_a_region_with_a_low_score_is_no_zone() -> None:
    """Text that is there is better than a picture that is not."""
    assert _labels(_page("table", 0.35)) == []


def test_on_a_scan_the_detector_decides() -> None:
    """There is no other evidence."""
    assert _labels(_page("figure", bitmaps=(Box(0, 0, 600, 800),))) == ["picture"]


def test_a_picture_of_text_between_lines_is_a_table() -> None:
    """Tables look like that."""
    words = tuple(word(120 + 80 * at, y, 40, "x") for y in (120, 160, 200) for at in range(3))
    rules = tuple(Box(100, y, 400, y + 0.5) for y in (110, 150, 220))
    assert _labels(_page("figure", words=words, pieces=words, rules=rules)) == ["table"]


def test_sentences_in_a_frame_are_no_picture() -> None:
    """Their text would be lost."""
    lines = tuple(word(110, 110 + 14 * at, 280, "many words in a long line of text") for at in range(12))
    assert _labels(_page("figure", pieces=lines, words=lines, drawings=(_AREA,))) == []


def test_a_table_excludes_running_text_above_and_below_its_lines() -> None:
    """The end of a caption, a note."""
    rules = (Box(100, 130, 400, 130.5), Box(100, 260, 400, 260.5))
    tail, note = word(100, 110, 200, "the tail of a caption"), word(100, 280, 200, "a note")
    [zone] = zones_of(_page("table", pieces=(tail, note), rules=rules))
    assert (round(zone.box.top), round(zone.box.bottom)) == (129, 261)


def test_a_table_keeps_a_heading_above_its_first_line() -> None:
    """Its words are in columns."""
    rules = (Box(100, 130, 400, 130.5), Box(100, 260, 400, 260.5))
    heads = (word(110, 110, 40, "Hive"), word(250, 110, 40, "kg"))
    [zone] = zones_of(_page("table", pieces=heads, rules=rules))
    assert zone.box.top == 100


def test_of_overlapping_zones_the_one_with_the_higher_score_stays() -> None:
    """The detector may find one thing twice."""
    page = PageContent(
        600, 800, regions=(Region("table", 0.6, _AREA), Region("table", 0.8, Box(110, 110, 400, 290)))
    )
    assert [zone.score for zone in zones_of(page)] == [0.8]


def test_a_slides_background_is_no_picture() -> None:
    """Text on colour is text."""
    ground = Box(0, 0, 600, 800)
    assert _labels(_page("figure", drawings=(ground,))) == []


def test_underlined_words_make_no_picture() -> None:
    """Links are underlined."""
    words = tuple(word(120, 120 + 20 * at, 60, "link") for at in range(6))
    lines = tuple(Box(120, 128.5 + 20 * at, 180, 129 + 20 * at) for at in range(6))
    assert _labels(_page("figure", words=words, drawings=lines)) == []
