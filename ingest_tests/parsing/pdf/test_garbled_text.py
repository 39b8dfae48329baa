import pytest

from ingest_assets.parsing.pdf.garbled_text import is_garbled

_PROSE = "Colonies need about fifteen kilograms of stores to live through the winter. "


@pytest.mark.parametrize(
    "text",
    [
        _PROSE * 5,
        "تعتبر البرمجة من الأدوات القوية التي يمكن أن تعزز الإنتاجية",
        "蜂群需要大约十五公斤的储备才能过冬",
        "Пчёлы собирают нектар весной и летом",
        "12.5 103.4 68.3 24.0 17.9",
        "✓ done ✓ done ✗ not done",
        "",
    ],
)
def test_text_is_not_garbled(text: str) -> None:
    """In any script, and with numbers or a few symbols."""
    assert not is_garbled([text])


@pytest.mark.parametrize(
    "text",
    [
        "\ufffd\ufffd\ufffd of \ufffd\ufffd\ufffd\ufffd",
        "\ue012\ue034\ue056\ue078 \ue012\ue034",
        "❚❤❡ ❞❡❢❛✉❧a116 ♣a114✐♥a116♦✉a116 ✐a115 ✈❡",
        "GLYPH<12>GLYPH<34>GLYPH<7> GLYPH<12>",
        "(cid:12)(cid:34)(cid:7)(cid:99)",
        "\x01\x02\x03\x04 \x05\x06",
    ],
)
def test_invalid_characters_are_garbled(text: str) -> None:
    """From fonts without character names."""
    assert is_garbled([text])


def test_text_without_vowels_is_garbled() -> None:
    """Every letter was replaced by another one."""
    shifted = "".join(
        chr((ord(letter) - 97 + 13) % 26 + 97) if letter.isalpha() else letter for letter in _PROSE.lower()
    )
    assert is_garbled([shifted.replace("u", "h").replace("e", "r").replace("i", "v").replace("a", "n") * 5])
    assert not is_garbled([_PROSE.lower() * 5])
