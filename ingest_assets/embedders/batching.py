"""Micro-batches: texts of several documents, embedded together by length."""

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
from ingest_assets.embedders.errors import AnyText, EmbedderClosed

# Counters of one call of an embedder: how many tokens, how many texts were cut, what it cost.


_counts: ContextVar[dict[str, int] | None] = ContextVar("counts of an embedder", default=None)


@contextmanager
def counting() -> Iterator[dict[str, int]]:
    """What is counted in this thread meanwhile."""
    counts: dict[str, int] = {}
    token = _counts.set(counts)
    try:
        yield counts
    finally:
        _counts.reset(token)


def count(name: str, number: int = 1) -> None:
    """Add to a counter of whoever called the embedder in this thread, if someone counts.

    What a lane of a `Batcher` counts goes there with the vector, as `Counted`.
    """
    counts = _counts.get()
    if counts is not None:
        counts[name] = counts.get(name, 0) + number


Text = TypeVar("Text")


@dataclass(frozen=True, eq=False)
class Counted:
    """A text's vector, with what it adds to the counters of whoever asked for it."""

    vector: np.ndarray
    counts: Mapping[str, int]


Vectors = Sequence[np.ndarray | Counted | ItemError]


@dataclass(eq=False)
class _Call(Generic[Text]):
    """What one caller waits for. `results` fills in any order; `open` counts what is still to come."""

    number: int
    open: int
    results: list[np.ndarray | Counted | BaseException | None]
    first_failure: int = field(init=False)

    def __post_init__(self) -> None:
        self.first_failure = self.open


@dataclass(frozen=True, eq=False)
class _Piece(Generic[Text]):
    """One text of a call, with what it costs."""

    call: _Call[Text]
    index: int
    text: Text
    tokens: int


class Batcher(Generic[Text]):
    """Texts of several callers (threads), embedded together in length-sorted, token-budgeted micro-batches.

    `run` embeds one micro-batch and answers for each of its texts, with a vector or with that text's error;
    what it raises for several texts is asked again for each alone, so that no caller suffers for another.
    At most `lanes` micro-batches run at the same time. The oldest call goes first, filled up with what is as
    long or little shorter, so that no call waits for ever. `Text` may be anything that `count` can measure.
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
        self._waiting: list[_Piece[Text]] = []  # by length, the longest last
        self._suspects: deque[_Piece[Text]] = deque()  # of micro-batches that failed: each runs alone
        self._calls = 0
        self._is_closed = False

    def embed(self, texts: Sequence[Text]) -> np.ndarray:
        """A row per text, in their order; or the error of the first that failed.

        Its place is in `detail`, unless any text would have met the same.
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
        return _rows(call)

    def close(self) -> None:
        """End the lanes; calls that still wait are refused."""
        with self._changed:
            self._is_closed = True
            for piece in [*self._suspects, *self._waiting]:
                _settle(piece, EmbedderClosed("The embedder was closed while texts waited for it."))
            self._suspects.clear()
            self._waiting.clear()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._free_lanes == self._lanes)

    def _enter(self, texts: Sequence[Text], counts: list[int]) -> _Call[Text]:
        if self._is_closed:
            raise EmbedderClosed("The embedder is closed.")
        self._calls += 1
        call: _Call[Text] = _Call(self._calls, len(texts), [None] * len(texts))
        pieces = [_Piece(call, i, text, n) for i, (text, n) in enumerate(zip(texts, counts, strict=True))]
        # Equal lengths stand latest call first, so that taking from the end takes the oldest of them.
        self._waiting = sorted([*self._waiting, *pieces], key=lambda p: (p.tokens, -p.call.number, -p.index))
        self._start()
        return call

    def _start(self) -> None:
        """Give every free lane a micro-batch."""
        while self._free_lanes and (self._suspects or self._waiting) and not self._is_closed:
            batch = [self._suspects.popleft()] if self._suspects else self._take()
            self._free_lanes -= 1
            # A daemon, unlike the threads of a pool: the end of a program waits for no model and no server.
            threading.Thread(target=self._work, args=(batch,), name="embed", daemon=True).start()

    def _work(self, batch: list[_Piece[Text]]) -> None:
        try:
            results = self._run([piece.text for piece in batch])
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for these texts
            self._finish(batch, [], error)
            return
        is_whole = len(results) == len(batch)
        broken = ContractBroken(f"The model gave {len(results)} vectors for {len(batch)} texts.")
        self._finish(batch, results, None if is_whole else broken)

    def _take(self) -> list[_Piece[Text]]:
        """The oldest call's longest text, and the next longest of all calls that fit beside it."""
        oldest = min(piece.call.number for piece in self._waiting)
        at = max(i for i, piece in enumerate(self._waiting) if piece.call.number == oldest)
        room = self._batch_tokens // max(1, self._waiting[at].tokens)
        start = at + 1 - min(at + 1, max(1, min(room, self._batch_size)))
        batch = self._waiting[start : at + 1]
        del self._waiting[start : at + 1]
        return batch

    def _finish(self, batch: list[_Piece[Text]], results: Vectors, error: BaseException | None) -> None:
        with self._changed:
            if error is not None and len(batch) > 1 and not self._is_closed:
                self._suspects.extend(batch)
            else:
                for piece, result in zip(batch, [error] * len(batch) if error else results, strict=True):
                    _settle(piece, result)
            self._drop(lambda piece: piece.index > piece.call.first_failure)
            self._free_lanes += 1
            self._start()
            self._changed.notify_all()

    def _drop(self, is_unwanted: Callable[[_Piece[Text]], bool]) -> None:
        """Texts that nobody waits for any more are not embedded."""
        for piece in [*self._suspects, *self._waiting]:
            if is_unwanted(piece):
                piece.call.open -= 1
        self._suspects = deque(piece for piece in self._suspects if not is_unwanted(piece))
        self._waiting = [piece for piece in self._waiting if not is_unwanted(piece)]


def _settle(piece: _Piece[Text], result: np.ndarray | Counted | BaseException) -> None:
    call = piece.call
    call.results[piece.index] = result
    call.open -= 1
    if isinstance(result, BaseException):
        call.first_failure = min(call.first_failure, piece.index)


def vectors_made(error: ItemError) -> Mapping[int, np.ndarray]:
    """What was made of a call that failed, by the places of its texts: it is paid for, and as good as any."""
    made: Mapping[int, np.ndarray] = getattr(error, "_vectors_made", {})
    return made


def _rows(call: _Call[Text]) -> np.ndarray:
    """In the caller's thread, where its counters are."""
    made: dict[int, np.ndarray] = {}
    for index, result in enumerate(call.results):
        if isinstance(result, Counted):
            for name, number in result.counts.items():
                count(name, number)
            made[index] = result.vector
        elif isinstance(result, np.ndarray):
            made[index] = result
    if call.first_failure < len(call.results):
        error: Any = call.results[call.first_failure]
        if isinstance(error, ItemError):
            # The caller's own: when a micro-batch fails as a whole, several callers have the same error.
            error = copy.copy(error)
            if not isinstance(error, AnyText):
                error.detail["index"] = call.first_failure
            error._vectors_made = made  # no part of the record
        raise error
    return np.stack([made[index] for index in range(len(call.results))]).astype(np.float32, copy=False)
