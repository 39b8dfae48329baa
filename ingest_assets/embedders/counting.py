"""Counters of one call of an embedder: how many tokens, how many texts were cut, what it cost."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

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


def count_all(counts: Mapping[str, int]) -> None:
    """Several counters at once."""
    for name, number in counts.items():
        count(name, number)
