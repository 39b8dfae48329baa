"""Long tables: the chunks of Docling's HybridChunker, in time proportional to the table's length."""

import json
import random
from typing import Any

import pytest
from docling_core.types.doc import DocItemLabel, DoclingDocument
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.settings.chunks import ChunkOptions, resolve_options
from ingest_assets.stages.chunks.cutter import Cutter
from ingest_assets.stages.chunks.token_count import (
    TextCounter,
    TokenizerCounter,
    capped_counter,
    count_plain_words,
    has_token_per_word,
    open_counter,
)
from ingest_tests.conftest import examples_times
from ingest_tests.stages.chunks.conftest import KINDS, tokenizer_of
from ingest_tests.stages.chunks.documents import table_of
from ingest_tests.stages.chunks.test_parity import _outcome, by_docling, by_us
from ingest_tests.stages.chunks.test_token_count import ANY_TEXT

COUNTERS = {name: open_counter(tokenizer_of(name)) for name in ("packaged", *KINDS)}
CELLS = [
    *("", "", " ", "bridge", "12.5", "the cable was inspected", "a|b", "x\ny", "\x00", "\u200b", "[SEP]"),
    *("東京の橋は長い" * 9, "unbelievable" * 30, "https://example.org/" + "a_b/" * 60),
    *("é\u0301 naïve", "a,b;" * 40),
]  # fmt: skip


def grid(seed: int, rows: int, columns: int) -> DoclingDocument:
    """A heading and a table of odd cells with a caption."""
    dice = random.Random(seed)
    document = DoclingDocument(name="grid")
    document.add_heading("Bridges of the north")
    caption = document.add_text(DocItemLabel.CAPTION, "Inspected in spring") if seed % 2 else None
    names = [dice.choice(["", "name", "東京", "two words"]) for _ in range(columns)]
    body = [[dice.choice(CELLS) for _ in range(columns)] for _ in range(rows)]
    document.add_table(table_of(names, *body), caption=caption)
    return document


def plain(rows: int) -> DoclingDocument:
    """A table of eight columns of a few words each."""
    document = DoclingDocument(name="plain")
    names = [f"column {column}" for column in range(8)]
    body = [[f"value {row} {column} kilo" for column in range(8)] for row in range(rows)]
    document.add_table(table_of(names, *body))
    return document


@examples_times(0.5)
@given(
    seed=st.integers(0, 10**9),
    rows=st.integers(0, 24),
    columns=st.integers(1, 6),
    max_tokens=st.sampled_from([16, 40, 120, 254]),
)
def test_any_table_is_cut_as_docling_cuts_it(seed: int, rows: int, columns: int, max_tokens: int) -> None:
    """Empty cells, words longer than a chunk, cells without blanks, CJK, control characters."""
    options, document = ChunkOptions(max_tokens=max_tokens), grid(seed, rows, columns)

    assert _outcome(by_us, document, "packaged", options) == _outcome(
        by_docling, document, "packaged", options
    )


@pytest.mark.parametrize("max_tokens", [24, 60])
@pytest.mark.parametrize("seed", range(2))
def test_a_table_is_cut_as_docling_cuts_it_with_any_tokenizer(kind: str, seed: int, max_tokens: int) -> None:
    """Also if a count stops at the number of plain words."""
    options, document = ChunkOptions(max_tokens=max_tokens), grid(seed, 8, 3)

    assert _outcome(by_us, document, kind, options) == _outcome(by_docling, document, kind, options)


class _Metered:
    """A counter that adds up the characters it counts."""

    def __init__(self, counter: Any) -> None:
        self._counter = counter
        self.letters = 0

    def __call__(self, text: str) -> int:
        self.letters += len(text)
        return self._counter(text)


def letters_counted(kind: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of characters that are counted for a table of this many rows."""
    cutter = Cutter(tokenizer_of(kind), resolve_options(ChunkOptions(max_tokens=254)))
    counter = cutter._chunker.tokenizer.counter
    metered = _Metered(type(counter).__call__.__get__(counter))
    monkeypatch.setattr(type(counter), "__call__", lambda _, text: metered(text))
    cutter.pieces(plain(rows))
    monkeypatch.undo()
    return metered.letters


def test_four_times_the_rows_are_about_four_times_the_work(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not sixteen times, as if the whole rest were counted for every chunk."""
    few, many = (letters_counted(kind, rows, monkeypatch) for rows in (100, 400))

    assert 3 * few < many < 6 * few


@pytest.mark.parametrize("name", ["packaged", *KINDS])
@given(texts=st.lists(ANY_TEXT, max_size=4), max_tokens=st.integers(1, 60))
def test_a_capped_count_is_exact_up_to_its_limit(name: str, texts: list[str], max_tokens: int) -> None:
    """It is above the limit if the tokenizer's own count is."""
    text = " ".join(texts)

    capped, exact = (
        capped_counter(COUNTERS[name], max_tokens)(text),
        TokenizerCounter(tokenizer_of(name))(text),
    )

    assert capped == exact if exact <= max_tokens else capped > max_tokens


@pytest.mark.parametrize("name", ["bpe", "unigram"])
@examples_times(2)
@given(text=ANY_TEXT)
def test_each_plain_word_has_a_token(name: str, text: str) -> None:
    """Whatever is between such words."""
    assert count_plain_words(text) <= TokenizerCounter(tokenizer_of(name))(text)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("bpe", {"normalizer": {"type": "NFC"}}),
        ("bpe", {"pre_tokenizer": {"type": "ByteLevel", "use_regex": False}}),
        ("bpe", {"pre_tokenizer": None}),
        ("bpe", {"added_tokens": [{"content": "a b"}]}),
        ("bpe", {"model": {"type": "BPE", "vocab": {"a": 0}}}),
        ("unigram", {"pre_tokenizer": {"type": "Metaspace", "split": False}}),
        ("unigram", {"normalizer": {"type": "Lowercase"}}),
        ("unigram", {"model": {"type": "WordLevel"}}),
    ],
)
def test_a_tokenizer_that_can_join_words_always_counts_whole_texts(name: str, change: dict[str, Any]) -> None:
    """The number of words is no lower bound for its tokens."""
    backend = tokenizer_of(name).backend_tokenizer
    form = json.loads(backend.to_str())

    assert has_token_per_word(backend, form)
    assert not has_token_per_word(backend, {**form, **change})
    counter = TextCounter(backend)
    assert capped_counter(counter, 5) is counter
