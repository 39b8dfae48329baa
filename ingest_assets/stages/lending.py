"""What is dear to open is opened once and lent to one item at a time, so that it need not be thread-safe."""

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

Tool = TypeVar("Tool")

# One for all: libraries import lazily and fill registries of their own while a tool opens.
_opening = threading.Lock()


class Lending(Generic[Tool]):
    """Warm tools by how they were opened. As many are opened as items run at once, and all are kept.

    A thread that is stuck in an item keeps the tool it was lent; the next item gets another one.
    """

    def __init__(self, open_tool: Callable[..., Tool]) -> None:
        self._open_tool = open_tool
        self._idle: dict[tuple[Hashable, ...], list[Tool]] = {}

    @contextlib.contextmanager
    def lend(self, *arguments: Hashable) -> Iterator[Tool]:
        """A tool opened with these arguments, for the length of the block and for nobody else meanwhile."""
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
