"""Time two ways to the same result in turns: how many times as fast the product is, and the spread."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ingest_tests.bench.figures import Figure, Relation

ROUNDS = 3  # at least; the best of fewer is chance
MOST_ROUNDS = 30

Naive = TypeVar("Naive")
Ours = TypeVar("Ours")


@dataclass(frozen=True, slots=True)
class Comparison(Generic[Naive, Ours]):
    """Seconds of both ways, in pairs per round, and the results of the last round."""

    naive_seconds: tuple[float, ...]
    ours_seconds: tuple[float, ...]
    naive: Naive
    ours: Ours

    @property
    def naive_s(self) -> float:
        """The best of all rounds, to exclude what other processes took."""
        return min(self.naive_seconds)

    @property
    def ours_s(self) -> float:
        """The best of all rounds."""
        return min(self.ours_seconds)

    @property
    def ratio(self) -> float:
        """How many times as fast the product is: best against best."""
        return self.naive_s / self.ours_s

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest ratio of a round."""
        ratios = [naive / ours for naive, ours in zip(self.naive_seconds, self.ours_seconds, strict=True)]
        return min(ratios), max(ratios)

    def figure(self, name: str, relation: Relation | None = None, bound: float = 0.0) -> Figure:
        """Return the ratio as a line of the table, with its spread and the seconds."""
        note = f"{self.naive_s:.3g} s against {self.ours_s:.3g} s"
        return Figure(name, self.ratio, "times", relation, bound, spread=self.spread, note=note)


def compared(
    naive: Callable[[], Naive],
    ours: Callable[[], Ours],
    *,
    rounds: int = ROUNDS,
    at_least_s: float = 3.0,
    before_each: Callable[[], object] | None = None,
) -> Comparison[Naive, Ours]:
    """Time both in turns, alternating which is first; warm up before, compare the results afterwards.

    So many rounds, and more of short ones until all took `at_least_s`: a busy neighbour must not decide.
    `before_each` is called before every timed call, off the clock: it puts things back as they were.
    """
    if rounds < ROUNDS:
        raise ValueError(f"{rounds} rounds are too few to compare by; take at least {ROUNDS}")
    naive_seconds: list[float] = []
    ours_seconds: list[float] = []
    for turn in range(max(rounds, MOST_ROUNDS)):
        if turn >= rounds and sum(naive_seconds) + sum(ours_seconds) >= at_least_s:
            break
        if turn % 2:  # the first warms the disk and the core, which must not help one way only
            ours_given, ours_s = _timed(ours, before_each)
            naive_given, naive_s = _timed(naive, before_each)
        else:
            naive_given, naive_s = _timed(naive, before_each)
            ours_given, ours_s = _timed(ours, before_each)
        naive_seconds.append(naive_s)
        ours_seconds.append(ours_s)
    return Comparison(tuple(naive_seconds), tuple(ours_seconds), naive_given, ours_given)


Given = TypeVar("Given")


def _timed(call: Callable[[], Given], before: Callable[[], object] | None) -> tuple[Given, float]:
    if before is not None:
        before()
    started = time.perf_counter()
    given = call()
    return given, time.perf_counter() - started
