"""A pool of objects that are expensive to open and not thread-safe, such as converters and tokenizers."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Pooled = TypeVar("Pooled")

# One lock for all pools: while an object opens, libraries import lazily and fill global registries.
_opening = threading.Lock()


class ObjectPool(Generic[Pooled]):
    """Open objects by the arguments they were opened with. As many are kept as were ever in use at once.

    A stuck thread keeps its object; the next item gets another one.
    """

    def __init__(self, open_object: Callable[..., Pooled]) -> None:
        self._open_object = open_object
        self._idle: dict[tuple[Hashable, ...], list[Pooled]] = {}

    @contextmanager
    def lend(self, *arguments: Hashable) -> Iterator[Pooled]:
        """Lend an object that was opened with these arguments; nothing else uses it inside the block."""
        idle = self._idle.setdefault(arguments, [])
        try:
            pooled = idle.pop()
        except IndexError:
            with _opening:
                pooled = self._open_object(*arguments)
        try:
            yield pooled
        finally:
            idle.append(pooled)
