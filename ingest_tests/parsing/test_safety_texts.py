"""Text in whatever encoding: read, mended or refused."""

import pytest

from ingest_assets.parsing.errors import CorruptDocument, GarbledText
from ingest_assets.parsing.guard.markup import (
    MAX_DEPTH,
    decode_text,
    depth_of,
    flattened,
    is_too_deep,
    refuse_deep_quotes,
)

RUSSIAN = "Пчёлы собирают мёд весной, и деревья цветут в саду. " * 20


@pytest.mark.parametrize(
    ("content", "expected", "warning"),
    [
        ("Bees é 🐝".encode(), "Bees é 🐝", None),
        (b"\xef\xbb\xbfBees", "Bees", None),
        ("Bees é".encode("utf-16"), "Bees é", None),
        ("Bees é".encode("utf-32"), "Bees é", None),
        ("Grüße, schön".encode("cp1252"), "Grüße, schön", "W_TEXT_ENCODING: not UTF-8, read as windows-1252"),
        (RUSSIAN.encode("koi8-r"), RUSSIAN, "W_TEXT_ENCODING: not UTF-8, read as koi8_r"),
        (RUSSIAN.encode("cp1251"), RUSSIAN, "W_TEXT_ENCODING: not UTF-8, read as cp1251"),
        ("é é é é é".encode() + b"\xff!", "é\ufffd!", "W_TEXT_REPLACED: 1 characters could not be decoded"),
        (b"Bees and trees " * 9 + b"\x00", "\ufffd", "W_TEXT_REPLACED: 1 characters could not be decoded"),
    ],
)
def test_bytes_become_the_text_they_were(content: bytes, expected: str, warning: str | None) -> None:
    """By their mark, as UTF-8, or by the look of them; what was done is said."""
    decoded = decode_text(content)
    assert decoded.text.endswith(expected)
    assert decoded.warnings == ((warning,) if warning else ())


def test_what_is_declared_is_believed_when_it_fits() -> None:
    """A Japanese page that says so needs no guess."""
    decoded = decode_text("蜂".encode("shift_jis"), "shift_jis")
    assert (decoded.text, decoded.warnings, decoded.is_as_declared) == ("蜂", (), True)
    assert decode_text("é".encode(), "no-such-encoding").text == "é"


@pytest.mark.parametrize(
    "content",
    [bytes(range(128, 256)) * 40, bytes(range(1, 256)) * 40, b"\x01\x02\x03abc" * 100, bytes(20) + b"abc"],
)
def test_bytes_that_are_no_text_are_garbled(content: bytes) -> None:
    """Control characters, or nothing in any encoding."""
    with pytest.raises(GarbledText):
        decode_text(content)


def test_depth_is_that_of_a_parser_that_closes_nothing_by_itself() -> None:
    """Void elements and closing tags of elements that are not open do not count."""
    assert depth_of("<div><p>a</p><br><img src=x></div></b><p>") == 2
    assert depth_of("<p>" * 300) == 300
    assert depth_of("<div><span></div><div></div>") == 2


def test_tags_in_scripts_and_comments_do_not_count() -> None:
    """Templates in scripts are long and close nothing."""
    tags = "<div>" * (MAX_DEPTH + 9)
    assert is_too_deep(tags)
    assert not is_too_deep(f"<script>x = '{tags}'</script><p>Bees</p><!-- {tags} -->")


def test_flattening_closes_what_html_closes_and_loses_no_word() -> None:
    """A list whose items nobody closed is a list, however long."""
    items = "".join(f"<li>item {at} &amp; <a href='#{at}'>more</a>" for at in range(500))
    flat = flattened(f"<ul>{items}</ul><p>after<script>alert(1)</script>")
    assert flat.count("<li>") == flat.count("</li>") == 500
    assert depth_of(flat) < 10
    assert 'item 499 &amp; <a href="#499">more</a>' in flat
    assert "alert" not in flat


def test_text_below_the_limit_comes_up() -> None:
    """Elements go, words stay."""
    flat = flattened("<div>" * 5000 + "bottom" + "</div>" * 5000 + "<p>after</p>")
    assert depth_of(flat) == MAX_DEPTH
    assert flat.index("bottom") < flat.index("after")


def test_quotes_within_quotes_have_an_end() -> None:
    """A hundred answers to answers are a long thread; a thousand are an attack."""
    refuse_deep_quotes("> " * 100 + "x")
    with pytest.raises(CorruptDocument, match="100 deep"):
        refuse_deep_quotes("text\n\n" + "> " * 101 + "x")
