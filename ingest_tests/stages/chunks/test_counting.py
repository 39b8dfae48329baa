"""Tokens are counted exactly as the tokenizer itself counts them, whatever the text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.stages.chunks.token_count import Asking, ByText, ByWord, is_additive, open_counter
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
    """What a tokenizer's file says."""
    return json.loads(tokenizer_of(kind).backend_tokenizer.to_str())


@pytest.mark.parametrize("name", COUNTERS)
@examples_times(4)
@given(text=ANY_TEXT)
def test_a_text_has_as_many_tokens_as_its_words_together(name: str, text: str) -> None:
    """Special tokens, control characters, accents, CJK, zero width: all that a document may hold."""
    assert COUNTERS[name](text) == Asking(tokenizer_of(name))(text)


@pytest.mark.parametrize("name", ["bpe", "unigram"])
@given(text=ANY_TEXT)
def test_other_tokenizers_are_asked(name: str, text: str) -> None:
    """And the answer is remembered."""
    counter, wanted = ByText(_backend(name)), Asking(tokenizer_of(name))(text)

    assert [counter(text), counter(text)] == [wanted, wanted]


def _backend(kind: str) -> Any:
    return tokenizer_of(kind).backend_tokenizer


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_every_character_is_counted_alike(step: int) -> None:
    """All of Unicode but surrogates, each alone, within a word and between words."""
    counter, wanted = COUNTERS["packaged"], Asking(tokenizer_of("packaged"))
    codes = [*range(0x2200), *range(0x2200, 0x110000, step)]
    letters = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    for start in range(0, len(letters), 4096):
        text = "".join(f"{letter} a{letter}b " for letter in letters[start : start + 4096])
        assert counter(text) == wanted(text), hex(ord(letters[start]))


def test_every_entry_of_the_vocabulary_is_counted_alike() -> None:
    """Those of letters and digits are known to be one token, and are."""
    counter, wanted = COUNTERS["packaged"], Asking(tokenizer_of("packaged"))
    entries = list(tokenizer_of("packaged").get_vocab())
    for start in range(0, len(entries), 256):
        text = " ".join(
            f"{entry} {entry.upper()} x{entry}, {entry}s" for entry in entries[start : start + 256]
        )
        assert counter(text) == wanted(text), entries[start]


def test_what_is_remembered_is_bounded() -> None:
    """And a count is the same after it was forgotten."""
    counter = ByWord(_backend("cased wordpiece"), form_of("cased wordpiece"))
    counter._known.update((f"filler{number}", 1) for number in range(100_001))

    assert counter("The bridges") == Asking(tokenizer_of("cased wordpiece"))("The bridges")
    assert len(counter._known) < 10
    assert counter("long" * 400 + " The") == 2
    assert max(map(len, counter._known)) < 100


def test_the_kind_of_tokenizer_decides_how_is_counted() -> None:
    """Word by word only where that was proved."""
    found = {name: type(open_counter(tokenizer_of(name))) for name in ("packaged", *KINDS)}

    assert found == {"packaged": ByWord, "cased wordpiece": ByWord, "bpe": ByText, "unigram": ByText}


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
def test_a_tokenizer_that_may_look_across_words_is_not_counted_by_word(change: dict[str, Any]) -> None:
    """Nothing is assumed of what was not looked at."""
    assert is_additive(form_of("packaged"))
    assert not is_additive({**form_of("packaged"), **change})


class _Otherwise:
    """A tokenizer whose file says one thing and which does another."""

    backend_tokenizer = property(lambda self: tokenizer_of("packaged").backend_tokenizer)

    def tokenize(self, text: str) -> list[str]:
        return list(text)


def test_a_tokenizer_that_does_not_do_what_its_file_says_is_asked() -> None:
    """A probe at the start shows it."""
    counter = open_counter(_Otherwise())

    assert isinstance(counter, Asking)
    assert counter(TEXTS[0]) == len(TEXTS[0])


def test_the_special_tokens_of_each_kind_are_known(kind: str) -> None:
    """Without loading the tokenizer."""
    from ingest_assets.embedders.model_files import tokenizer_files

    assert tokenizer_files(folder_of(kind)).special_tokens == tokenizer_of(kind).num_special_tokens_to_add()
