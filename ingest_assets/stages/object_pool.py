"""A pool of objects that are expensive to open and not thread-safe, such as converters and tokenizers."""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

Tool = TypeVar("Tool")

# One lock for all pools: while a tool opens, libraries import lazily and fill global registries.
_opening = threading.Lock()


class ObjectPool(Generic[Tool]):
    """Opened tools by their arguments. It opens as many as are used at once, and keeps them.

    A stuck thread keeps its tool; the next item gets another one.
    """

    def __init__(self, open_tool: Callable[..., Tool]) -> None:
        self._open_tool = open_tool
        self._idle: dict[tuple[Hashable, ...], list[Tool]] = {}

    @contextmanager
    def lend(self, *arguments: Hashable) -> Iterator[Tool]:
        """Lend a tool that was opened with these arguments; nothing else uses it inside the block."""
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
