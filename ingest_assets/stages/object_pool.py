"""A pool of objects that are expensive to open and not thread-safe, such as converters and tokenizers."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Tool = TypeVar("Tool")

# One for all pools: libraries import lazily and fill registries of their own while a tool opens.
_opening = threading.Lock()


class ObjectPool(Generic[Tool]):
    """Warm tools by how they were opened. As many are opened as items run at once, and all are kept.

    A thread that is stuck in an item keeps the tool it was lent; the next item gets another one.
    """

    def __init__(self, open_tool: Callable[..., Tool]) -> None:
        self._open_tool = open_tool
        self._idle: dict[tuple[Hashable, ...], list[Tool]] = {}

    @contextmanager
    def lend(self, *arguments: Hashable) -> Iterator[Tool]:
        """A tool opened with these arguments, which nothing else uses for the length of the block."""
        idle = self._idle.setdefault(arguments, [])
        try:
            tool = idle.pop()
        except IndexError:
            with _opening:
                tool = self._open_tool(*arguments)
        try:
            yield tool
        finally:
            idle.append(tool)
