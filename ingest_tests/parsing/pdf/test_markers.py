import pytest

from ingest_assets.parsing.pdf.markers import bullet_of, caption_of, enumeration_of, section_number_of


@pytest.mark.parametrize("text", ["• Weigh", "- Weigh", "– Weigh", "▪ Weigh", "✓ Weigh", "* Weigh"])
def test_bullets_are_recognized(text: str) -> None:
    """Programs use different ones."""
    assert bullet_of(text) == text[0]


@pytest.mark.parametrize("text", ["-5 degrees", "—", "*emphasis*", "Weigh", "+1"])
def test_characters_of_a_word_are_no_bullets(text: str) -> None:
    """A bullet is followed by a space and text."""
    assert bullet_of(text) == ""


@pytest.mark.parametrize(
    "text", ["1. Weigh", "12) Weigh", "(a) Weigh", "[31] Weigh", "iv. Weigh", "b) Weigh"]
)
def test_counters_are_recognized(text: str) -> None:
    """In many notations."""
    assert enumeration_of(text) == text.split()[0]


@pytest.mark.parametrize("text", ["1995. A good year", "12 hives", "1.5 kilograms", "e.g. bees"])
def test_numbers_in_a_sentence_are_no_counters(text: str) -> None:
    """Only numbers that could count items are."""
    assert enumeration_of(text) == ""


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3 Results", "3"),
        ("2.1 Styles", "2.1"),
        ("A.1 Part one", "A.1"),
        ("IV. FLOATS", "IV."),
        ("Appendix B: More", ""),
        ("Chapter 2 Bees", "Chapter 2"),
        ("Results", ""),
        ("2022", ""),
    ],
)
def test_section_numbers_are_recognized(text: str, number: str) -> None:
    """A number, and then a name."""
    assert section_number_of(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "Figure 3: Hives",
        "Fig. 2. Hives",
        "TABLE IV. Hives",
        "Table 2 Results of",
        "Figure 7-26. Nuts",
        "Listing 1: Sum",
    ],
)
def test_captions_are_recognized_by_their_start(text: str) -> None:
    """Name, number, and then punctuation or a capital."""
    assert caption_of(text)


@pytest.mark.parametrize(
    "text", ["Table 2 shows that", "Figures Example", "Figure", "Fig trees grow", "In Figure 2: x"]
)
def test_sentences_about_figures_are_no_captions(text: str) -> None:
    """They only mention one."""
    assert caption_of(text) == ""
