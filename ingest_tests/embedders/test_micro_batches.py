"""Micro-batches: every caller gets its own vectors, or the error of its own text."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.core.errors import ContractBroken
from ingest_assets.embedders.batcher import Batcher, Vectors
from ingest_assets.embedders.errors import EmbedderClosed, TextTooLong


class Ruler:
    """Embeds a text as its length and first character; records its batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def run(self, texts: list[str]) -> Vectors:
        self.batches.append(texts)
        self.entered.set()
        self.gate.wait(30)
        if "short list" in texts and len(texts) > 1:
            return []
        if "crash" in texts:
            raise ZeroDivisionError("crash")
        return [TextTooLong(text) if text.startswith("bad") else vector(text) for text in texts]


def vector(text: str) -> np.ndarray:
    """The vector of a text."""
    return np.array([len(text), ord(text[0]) if text else 0], dtype=np.float32)


def lengths(texts: Sequence[str]) -> list[int]:
    """One token per character."""
    return [len(text) for text in texts]


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for a condition that another thread makes true."""
    last = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < last
        time.sleep(0.001)


@pytest.fixture
def ruler() -> Iterator[Ruler]:
    """Its gate opens at the end of the test, so that no thread is left."""
    ruler = Ruler()
    yield ruler
    ruler.gate.set()


def batcher(ruler: Ruler, lanes: int = 1, batch_tokens: int = 40, batch_size: int = 4) -> Batcher[str]:
    return Batcher(ruler.run, lengths, lanes=lanes, batch_tokens=batch_tokens, batch_size=batch_size)


def test_rows_are_in_the_order_of_the_texts(ruler: Ruler) -> None:
    """Although the longest are embedded first."""
    texts = ["a", "ccc" * 5, "bb", "", "dddd"]

    rows = batcher(ruler).embed(texts)

    np.testing.assert_array_equal(rows, np.stack([vector(text) for text in texts]))
    assert rows.dtype == np.float32
    assert ruler.batches == [["dddd", "ccc" * 5], ["", "a", "bb"]]


def test_a_micro_batch_respects_its_limits_of_tokens_and_texts(ruler: Ruler) -> None:
    """Padding counts; a text above the limit runs alone."""
    batcher(ruler, batch_tokens=10, batch_size=3).embed(["x" * n for n in (50, 5, 5, 5, 1, 1, 1, 1)])

    assert [lengths(batch) for batch in ruler.batches] == [[50], [5, 5], [1, 5], [1, 1, 1]]


def test_texts_of_several_callers_share_a_micro_batch(ruler: Ruler) -> None:
    """Texts that arrive while a batch runs are batched together."""
    shared = batcher(ruler)
    ruler.gate.clear()
    with ThreadPoolExecutor(4) as callers:
        first = callers.submit(shared.embed, ["first"])
        assert ruler.entered.wait(30)
        others = [callers.submit(shared.embed, [letter * 3]) for letter in "xyz"]
        wait_until(lambda: len(shared._waiting) == 3)
        ruler.gate.set()
        rows = [future.result(30) for future in others]

    assert sorted(ruler.batches[1]) == ["xxx", "yyy", "zzz"]
    np.testing.assert_array_equal(np.concatenate(rows), np.stack([vector(c * 3) for c in "xyz"]))
    np.testing.assert_array_equal(first.result(), [vector("first")])


def test_a_bad_text_fails_its_own_caller_only(ruler: Ruler) -> None:
    """The error names the text; other texts in the batch get their vectors."""
    shared = batcher(ruler, batch_size=8)
    ruler.gate.clear()
    with ThreadPoolExecutor(3) as callers:
        callers.submit(shared.embed, ["gate"])
        assert ruler.entered.wait(30)
        good = callers.submit(shared.embed, ["one", "two"])
        bad = callers.submit(shared.embed, ["six", "bad", "ten", "bad"])
        wait_until(lambda: len(shared._waiting) == 6)
        ruler.gate.set()

        np.testing.assert_array_equal(good.result(30), [vector("one"), vector("two")])
        with pytest.raises(TextTooLong) as raised:
            bad.result(30)

    assert raised.value.detail["index"] == 1


@pytest.mark.parametrize(
    ("culprit", "kind"), [("crash", ZeroDivisionError), ("short list", None)], ids=["raises", "miscounts"]
)
def test_a_batch_that_raises_is_retried_text_by_text(
    ruler: Ruler, culprit: str, kind: type[Exception] | None
) -> None:
    """So the failing text is found."""
    shared = batcher(ruler, batch_size=8)
    ruler.gate.clear()
    with ThreadPoolExecutor(3) as callers:
        callers.submit(shared.embed, ["gate"])
        assert ruler.entered.wait(30)
        good = callers.submit(shared.embed, ["other"])
        suspect = callers.submit(shared.embed, [culprit])
        wait_until(lambda: len(shared._waiting) == 2)
        ruler.gate.set()

        np.testing.assert_array_equal(good.result(30), [vector("other")])
        if kind is None:
            np.testing.assert_array_equal(suspect.result(30), [vector(culprit)])
        else:
            with pytest.raises(kind):
                suspect.result(30)


def test_a_wrong_number_of_vectors_breaks_the_contract() -> None:
    """Otherwise a text could get the vector of another."""
    short: Batcher[str] = Batcher(lambda _: [], lengths, lanes=1, batch_tokens=9, batch_size=9)

    with pytest.raises(ContractBroken, match="0 vectors for 1 texts"):
        short.embed(["a", "b"])


def test_the_oldest_call_is_not_overtaken_indefinitely(ruler: Ruler) -> None:
    """New long texts do not starve a short one."""
    shared = batcher(ruler, batch_size=1)
    ruler.gate.clear()
    with ThreadPoolExecutor(3) as callers:
        callers.submit(shared.embed, ["gate"])
        assert ruler.entered.wait(30)
        callers.submit(shared.embed, ["s"])
        wait_until(lambda: len(shared._waiting) == 1)
        callers.submit(shared.embed, ["long" * 5, "long" * 6])
        wait_until(lambda: len(shared._waiting) == 3)
        ruler.gate.set()

    assert ruler.batches[1] == ["s"]


def test_a_closed_batcher_rejects_waiting_and_new_calls(ruler: Ruler) -> None:
    """No call waits indefinitely. Closing twice is safe."""
    shared = batcher(ruler, batch_size=1)
    ruler.gate.clear()
    with ThreadPoolExecutor(2) as callers:
        waiting = callers.submit(shared.embed, ["runs", "waits"])
        assert ruler.entered.wait(30)
        closing = callers.submit(shared.close)
        wait_until(lambda: shared._is_closed)
        ruler.gate.set()
        closing.result(30)
        with pytest.raises(EmbedderClosed):
            waiting.result(30)
    shared.close()

    with pytest.raises(EmbedderClosed):
        shared.embed(["late"])


def test_a_micro_batch_that_fails_while_closing_leaves_no_call_waiting(ruler: Ruler) -> None:
    """No lane is left to retry its texts one by one."""
    shared = batcher(ruler)
    ruler.gate.clear()
    with ThreadPoolExecutor(2) as callers:
        waiting = callers.submit(shared.embed, ["crash", "other"])
        assert ruler.entered.wait(30)
        closing = callers.submit(shared.close)
        wait_until(lambda: shared._is_closed)
        ruler.gate.set()
        closing.result(30)
        with pytest.raises(ZeroDivisionError):
            waiting.result(30)


@given(
    st.lists(st.lists(st.text("ab", max_size=12), max_size=6), max_size=6),
    st.integers(1, 3),
    st.integers(1, 30),
    st.integers(1, 5),
)
def test_every_caller_gets_its_own_results_with_any_limits(
    documents: list[list[str]], lanes: int, batch_tokens: int, batch_size: int
) -> None:
    """Of a document with several failing texts, the first is named."""
    ruler = Ruler()
    shared = batcher(ruler, lanes, batch_tokens, batch_size)
    documents = [[f"bad{t}" if t.startswith("bb") else t for t in texts] for texts in documents]
    with ThreadPoolExecutor(6) as callers:
        done = [callers.submit(shared.embed, texts) for texts in documents]
    shared.close()

    for texts, future in zip(documents, done, strict=True):
        bad = [index for index, text in enumerate(texts) if text.startswith("bad")]
        if bad:
            assert future.exception().detail["index"] == bad[0]
        elif texts:
            np.testing.assert_array_equal(future.result(), np.stack([vector(text) for text in texts]))
    assert all(len(batch) == 1 or len(batch) * max(lengths(batch)) <= batch_tokens for batch in ruler.batches)
