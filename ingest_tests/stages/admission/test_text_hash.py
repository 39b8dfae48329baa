"""Text hashes, and counts of words and characters in all scripts."""

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.stages.admission.document_text import (
    different_words,
    meaningful_chars,
    normal_text,
    samples,
    text_hash,
    word_count,
    words_of,
)

_WORDS = st.lists(st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1), max_size=8)
_SPACES = st.sampled_from([" ", "\n", "\t", "\r\n", "  \n ", "\u00a0", "\u2003", "\x0b"])
_CONTROLS = st.sampled_from(["\x00", "\x07", "\x1b", "\x7f", "\x90"])


@given(_WORDS, st.data())
def test_case_whitespace_and_control_characters_do_not_count(words: list[str], data: st.DataObject):
    """The same page, saved by two programs."""
    changed = "".join(
        data.draw(_SPACES) + word.lower()[:1] + data.draw(_CONTROLS) + word.lower()[1:] for word in words
    )

    assert text_hash(changed) == text_hash(" ".join(words))


@given(st.text(), st.text())
def test_nothing_else_is_ignored(left: str, right: str):
    """Texts with equal hashes differ in nothing else."""

    def words(text: str) -> list[str]:
        return unicodedata.normalize(
            "NFC", re.sub("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]", "", text).lower()
        ).split()

    assert (text_hash(left) == text_hash(right)) == (words(left) == words(right))


def test_composed_and_decomposed_letters_are_the_same():
    """macOS decomposes letters in file names and some texts."""
    assert text_hash("Brücke") == text_hash("Bru\u0308cke")


def test_words_stay_apart():
    """Whitespace is collapsed, not removed; punctuation and accents count."""
    assert len({text_hash(text) for text in ("ab", "a b", "a-b", "áb", "a\u200bb")}) == 5


def test_normal_text_is_stable():
    """Normalizing twice changes nothing."""
    assert normal_text(normal_text("  Über\x00 ALLES\n\tNeu ")) == "über alles neu"


def test_lone_surrogates_have_a_hash():
    """They occur in broken documents, and UTF-8 cannot encode them."""
    assert text_hash("\ud800a") != text_hash("a")


@given(st.text())
def test_letters_and_digits_are_counted_alike_in_every_alphabet(text: str):
    """The fast path for ASCII gives the same count."""
    assert meaningful_chars(text) == sum(character.isalnum() for character in text)


def test_words_keep_their_marks():
    """The vowels of Devanagari are marks; a cut there would leave single consonants."""
    assert words_of("हिन्दी में, don't") == ["हिन्दी", "में", "don", "t"]
    assert words_of("橋は1932年") == ["橋", "は", "1932", "年"]


def test_scripts_without_spaces_have_words():
    """About two characters per word."""
    assert word_count("The bridge is closed.") == 4
    assert 7 <= word_count("今晚十点至凌晨五点大桥封闭") <= 9
    assert different_words("word word Word a b") == 1
    assert different_words("今晚十点至凌晨五点大桥封闭") == 8


def test_samples_come_from_start_middle_and_end():
    """A translation often follows the original."""
    text = "a" * 1000 + "b" * 1000 + "c" * 1000

    parts = samples(text, 3, 10)

    assert parts == ["a" * 10, "b" * 10, "c" * 10]
    assert samples("short", 3, 10) == ["short"]
