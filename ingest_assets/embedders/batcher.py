"""Micro-batches: texts of several documents, sorted by length and embedded together."""

import copy
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from ingest_assets.core.errors import ContractBroken, ItemError
from ingest_assets.embedders.errors import EmbedderClosed, EmbedderError

# Counters of one call of an embedder: tokens, truncated texts, cost.


_counts: ContextVar[dict[str, int] | None] = ContextVar("counts of an embedder", default=None)


@contextmanager
def collect_counts() -> Iterator[dict[str, int]]:
    """Collect the counts of this thread inside the `with` block."""
    counts: dict[str, int] = {}
    token = _counts.set(counts)
    try:
        yield counts
    finally:
        _counts.reset(token)


def count(name: str, number: int = 1) -> None:
    """Add to a counter of this thread, inside `collect_counts`; otherwise do nothing.

    A lane of a `Batcher` runs in another thread: it returns its counts with the vector, as `Counted`.
    """
    counts = _counts.get()
    if counts is not None:
        counts[name] = counts.get(name, 0) + number


Text = TypeVar("Text")


@dataclass(frozen=True, eq=False)
class Counted:
    """A text's vector, and what it adds to the caller's counters."""

    vector: np.ndarray
    counts: Mapping[str, int]


Vectors = Sequence[np.ndarray | Counted | ItemError]


@dataclass(eq=False)
class _Call(Generic[Text]):
    """One caller's texts. `results` is filled in any order; `open` counts the missing results."""

    number: int
    open: int
    results: list[np.ndarray | Counted | BaseException | None]
    first_failure: int = field(init=False)

    def __post_init__(self) -> None:
        self.first_failure = self.open


@dataclass(frozen=True, eq=False)
class _Piece(Generic[Text]):
    """One text of a call, and its number of tokens."""

    call: _Call[Text]
    index: int
    text: Text
    tokens: int


class Batcher(Generic[Text]):
    """Embeds texts of several callers (threads) in micro-batches, sorted by length and limited in tokens.

    `run` embeds one micro-batch and returns a vector or an error for each text. If it raises for several
    texts, each is retried alone, so that no caller gets the error of another. At most `lanes` micro-batches
    run at the same time. A micro-batch starts with the oldest call, so that none waits indefinitely, and is
    filled with texts of about the same length. `Text` is any type that `count` accepts.
    """

    def __init__(
        self,
        run: Callable[[list[Text]], Vectors],
        count: Callable[[Sequence[Text]], list[int]],
        *,
        lanes: int,
        batch_tokens: int,
        batch_size: int,
    ) -> None:
        self._run, self._count = run, count
        self._batch_tokens, self._batch_size = batch_tokens, batch_size
        self._lanes = self._free_lanes = lanes
        self._changed = threading.Condition()
        self._waiting: list[_Piece[Text]] = []  # sorted by length, longest last
        self._retry_alone: deque[_Piece[Text]] = deque()  # texts of failed micro-batches
        self._calls = 0
        self._is_closed = False

    def embed(self, texts: Sequence[Text]) -> np.ndarray:
        """Return one row per text, in order; raise the error of the first text that failed.

        The text's position is in `detail["index"]`, except for an `EmbedderError`.
        """
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        counts = self._count(texts)
        with self._changed:
            call = self._enter(texts, counts)
            try:
                self._changed.wait_for(lambda: call.open == 0)
            finally:
                self._drop(lambda piece: piece.call is call)
        return _vectors(call)

    def close(self) -> None:
        """End the lanes; waiting calls fail with `EmbedderClosed`."""
        with self._changed:
            self._is_closed = True
            for piece in [*self._retry_alone, *self._waiting]:
                _set_result(piece, EmbedderClosed("The embedder was closed while texts were waiting."))
            self._retry_alone.clear()
            self._waiting.clear()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._free_lanes == self._lanes)

    def _enter(self, texts: Sequence[Text], counts: list[int]) -> _Call[Text]:
        if self._is_closed:
            raise EmbedderClosed("The embedder is closed.")
        self._calls += 1
        call: _Call[Text] = _Call(self._calls, len(texts), [None] * len(texts))
        pieces = [_Piece(call, i, text, n) for i, (text, n) in enumerate(zip(texts, counts, strict=True))]
        # Among equal lengths the latest call comes first, since batches are taken from the end.
        self._waiting = sorted([*self._waiting, *pieces], key=lambda p: (p.tokens, -p.call.number, -p.index))
        self._start()
        return call

    def _start(self) -> None:
        """Start a micro-batch on every free lane."""
        while self._free_lanes and (self._retry_alone or self._waiting) and not self._is_closed:
            batch = [self._retry_alone.popleft()] if self._retry_alone else self._take()
            self._free_lanes -= 1
            # A daemon, unlike a pool's threads: the interpreter must not wait for a model or server at exit.
            threading.Thread(target=self._work, args=(batch,), name="embed", daemon=True).start()

    def _work(self, batch: list[_Piece[Text]]) -> None:
        try:
            results = self._run([piece.text for piece in batch])
        except BaseException as error:  # noqa: BLE001 - raised again in the callers' threads
            self._finish(batch, [], error)
            return
        is_complete = len(results) == len(batch)
        broken = ContractBroken(f"The model returned {len(results)} vectors for {len(batch)} texts.")
        self._finish(batch, results, None if is_complete else broken)

    def _take(self) -> list[_Piece[Text]]:
        """Remove and return the oldest call's longest text, and the next longest that fit its micro-batch."""
        oldest = min(piece.call.number for piece in self._waiting)
        end = max(i for i, piece in enumerate(self._waiting) if piece.call.number == oldest) + 1
        room = self._batch_tokens // max(1, self._waiting[end - 1].tokens)
        start = end - min(end, max(1, min(room, self._batch_size)))
        batch = self._waiting[start:end]
        del self._waiting[start:end]
        return batch

    def _finish(self, batch: list[_Piece[Text]], results: Vectors, error: BaseException | None) -> None:
        with self._changed:
            if error is not None and len(batch) > 1 and not self._is_closed:
                self._retry_alone.extend(batch)
            else:
                for piece, result in zip(batch, [error] * len(batch) if error else results, strict=True):
                    _set_result(piece, result)
            self._drop(lambda piece: piece.index > piece.call.first_failure)
            self._free_lanes += 1
            self._start()
            self._changed.notify_all()

    def _drop(self, is_unwanted: Callable[[_Piece[Text]], bool]) -> None:
        """Remove texts whose result is no longer needed."""
        for piece in [*self._retry_alone, *self._waiting]:
            if is_unwanted(piece):
                piece.call.open -= 1
        self._retry_alone = deque(piece for piece in self._retry_alone if not is_unwanted(piece))
        self._waiting = [piece for piece in self._waiting if not is_unwanted(piece)]


def _set_result(piece: _Piece[Text], result: np.ndarray | Counted | BaseException) -> None:
    call = piece.call
    call.results[piece.index] = result
    call.open -= 1
    if isinstance(result, BaseException):
        call.first_failure = min(call.first_failure, piece.index)


def partial_vectors(error: ItemError) -> Mapping[int, np.ndarray]:
    """Return the vectors of a failed call by the positions of its texts, so that they can be cached."""
    vectors: Mapping[int, np.ndarray] = getattr(error, "_partial_vectors", {})
    return vectors


def _vectors(call: _Call[Text]) -> np.ndarray:
    """Return the vectors or raise the first error; runs in the caller's thread, for its counters."""
    vectors: dict[int, np.ndarray] = {}
    for index, result in enumerate(call.results):
        if isinstance(result, Counted):
            for name, number in result.counts.items():
                count(name, number)
            vectors[index] = result.vector
        elif isinstance(result, np.ndarray):
            vectors[index] = result
    if call.first_failure < len(call.results):
        error: Any = call.results[call.first_failure]
        if isinstance(error, ItemError):
            # A copy: when a whole micro-batch fails, several callers get the same error.
            error = copy.copy(error)
            if not isinstance(error, EmbedderError):
                error.detail["index"] = call.first_failure
            error._partial_vectors = vectors  # not in `detail`, which is stored
        raise error
    return np.stack([vectors[index] for index in range(len(call.results))]).astype(np.float32, copy=False)
