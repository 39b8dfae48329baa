"""Token counts equal those of the tokenizer itself, for every text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.stages.chunks.token_count import (
    TextCounter,
    TokenizerCounter,
    WordCounter,
    is_additive,
    open_counter,
)
from ingest_tests.conftest import examples_times
from ingest_tests.stages.chunks.conftest import KINDS, TEXTS, folder_of, tokenizer_of

ODD = [
    "[SEP]", "[CLS]", "a[SEP]b", "[sep]", "[UNK]", "##ing", "[", "]", "[MASK", "<x>", "bridge", "Bridges",
    "idg", "\x00", "\ufffd", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "\u200b",
    "\u200d", "\ufeff", "\u00ad", "\u0301", "e\u0301", "é", "ÀÉ", "İ", "ß", "ﬁ", "Ǆ", "ς", "Σ", "東京",
    "한국어", "ไทย", "ﷺ", "😀", "👩\u200d👩\u200d👧", "🏳\ufe0f", "\ue000", "\U0010ffff", "שלום",
    "\u202eabc", "x" * 99, "y" * 101,
    "pneumonoultramicroscopic", "http://a.b/c_d?e=f&g#h", "it's", "1,234.50", "--", "…", "—", "_", "`",
    "\x7f",
]  # fmt: skip
BLANKS = [" ", "\n", "\t", "\r", "\r\n", "  ", "", "\n\n"]
LETTERS = st.characters(exclude_categories=["Cs"])
WORDS = st.one_of(
    st.sampled_from(ODD), st.text(LETTERS, max_size=12), st.text(st.sampled_from("aAbZ19.,[]é "), max_size=9)
)
ANY_TEXT = st.lists(st.tuples(WORDS, st.sampled_from(BLANKS)), max_size=25).map(
    lambda pairs: "".join(word + blank for word, blank in pairs)
)
COUNTERS = {name: open_counter(tokenizer_of(name)) for name in ("packaged", "cased wordpiece")}


def form_of(kind: str) -> Any:
    """Return the content of a tokenizer's file."""
    return json.loads(tokenizer_of(kind).backend_tokenizer.to_str())


@pytest.mark.parametrize("name", COUNTERS)
@examples_times(4)
@given(text=ANY_TEXT)
def test_a_text_has_as_many_tokens_as_its_words_together(name: str, text: str) -> None:
    """Special tokens, control characters, accents, CJK, zero width: all that documents can contain."""
    assert COUNTERS[name](text) == TokenizerCounter(tokenizer_of(name))(text)


@pytest.mark.parametrize("name", ["bpe", "unigram"])
@given(text=ANY_TEXT)
def test_other_tokenizers_count_whole_texts(name: str, text: str) -> None:
    """The count is cached."""
    counter, expected = TextCounter(_backend(name)), TokenizerCounter(tokenizer_of(name))(text)

    assert [counter(text), counter(text)] == [expected, expected]


def _backend(kind: str) -> Any:
    return tokenizer_of(kind).backend_tokenizer


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_every_character_has_the_tokenizers_count(step: int) -> None:
    """All of Unicode except surrogates, each alone, within a word and between words."""
    counter, exact = COUNTERS["packaged"], TokenizerCounter(tokenizer_of("packaged"))
    codes = [*range(0x2200), *range(0x2200, 0x110000, step)]
    letters = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    for start in range(0, len(letters), 4096):
        text = "".join(f"{letter} a{letter}b " for letter in letters[start : start + 4096])
        assert counter(text) == exact(text), hex(ord(letters[start]))


def test_every_entry_of_the_vocabulary_has_the_tokenizers_count() -> None:
    """Also entries of letters and digits, which are counted as one token without the tokenizer."""
    counter, exact = COUNTERS["packaged"], TokenizerCounter(tokenizer_of("packaged"))
    entries = list(tokenizer_of("packaged").get_vocab())
    for start in range(0, len(entries), 256):
        text = " ".join(
            f"{entry} {entry.upper()} x{entry}, {entry}s" for entry in entries[start : start + 256]
        )
        assert counter(text) == exact(text), entries[start]


def test_the_cache_of_counts_is_bounded() -> None:
    """A count is the same after it was removed."""
    counter = WordCounter(_backend("cased wordpiece"), form_of("cased wordpiece"))
    counter._known.update((f"filler{number}", 1) for number in range(100_001))

    assert counter("The bridges") == TokenizerCounter(tokenizer_of("cased wordpiece"))("The bridges")
    assert len(counter._known) < 10
    assert counter("long" * 400 + " The") == 2
    assert max(map(len, counter._known)) < 100


def test_the_kind_of_tokenizer_selects_the_counter() -> None:
    """Only tokenizers that are known to work by words are counted by words."""
    counters = {name: type(open_counter(tokenizer_of(name))) for name in ("packaged", *KINDS)}

    assert counters == {
        "packaged": WordCounter,
        "cased wordpiece": WordCounter,
        "bpe": TextCounter,
        "unigram": TextCounter,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": None},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"model": {"type": "BPE"}},
        {"added_tokens": [{"content": "a b", "lstrip": False, "rstrip": False, "single_word": False}]},
        {"added_tokens": [{"content": "ab", "lstrip": True, "rstrip": False, "single_word": False}]},
    ],
)
def test_a_tokenizer_that_can_join_words_is_not_counted_by_words(change: dict[str, Any]) -> None:
    """Nothing is assumed about unknown steps."""
    assert is_additive(form_of("packaged"))
    assert not is_additive({**form_of("packaged"), **change})


class _Inconsistent:
    """A tokenizer that does not do what is in its file."""

    backend_tokenizer = property(lambda self: tokenizer_of("packaged").backend_tokenizer)

    def tokenize(self, text: str) -> list[str]:
        return list(text)


def test_a_tokenizer_that_differs_from_its_file_counts_itself() -> None:
    """A probe at the start detects it."""
    counter = open_counter(_Inconsistent())

    assert isinstance(counter, TokenizerCounter)
    assert counter(TEXTS[0]) == len(TEXTS[0])


def test_the_special_tokens_of_each_kind_are_known(kind: str) -> None:
    """Without loading the tokenizer."""
    from ingest_assets.embedders.model_files import tokenizer_files

    assert tokenizer_files(folder_of(kind)).special_tokens == tokenizer_of(kind).num_special_tokens_to_add()
