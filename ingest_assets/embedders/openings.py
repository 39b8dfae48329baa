"""Models that a process holds open: each once, for all its threads."""

import os
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ingest_assets.embedders.errors import ModelUnusable
from ingest_assets.embedders.foreign import told
from ingest_assets.model.errors import ConfigError

REMEMBERED_S = 60.0

Key = TypeVar("Key", bound=Hashable)
Opened = TypeVar("Opened")


class Openings(Generic[Key, Opened]):
    """What is open, by what was asked for; a forked child has its own.

    What cannot be opened is told to everybody who asks within a minute: each try may take as long.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, Key], Opened] = {}
        self._failed: dict[tuple[int, Key], tuple[float, str]] = {}

    def get(self, key: Key, who: str, open_it: Callable[[], Opened]) -> Opened:
        """The one that is open, or opened now; `who` begins the line that says why it cannot be."""
        with self._lock:
            own = os.getpid(), key
            if own not in self._open:
                self._require_untried(own)
                self._open[own] = self._opened(own, who, open_it)
            return self._open[own]

    def take(self, is_wanted: Callable[[Key], bool]) -> list[Opened]:
        """Let go of some, for whoever closes them. All that failed may be tried again."""
        with self._lock:
            self._failed.clear()
            own = [known for known in self._open if known[0] == os.getpid() and is_wanted(known[1])]
            return [self._open.pop(known) for known in own]

    def _require_untried(self, own: tuple[int, Key]) -> None:
        failed = self._failed.get(own)
        if failed is not None and time.monotonic() - failed[0] < REMEMBERED_S:
            raise ModelUnusable(failed[1])

    def _opened(self, own: tuple[int, Key], who: str, open_it: Callable[[], Opened]) -> Opened:
        try:
            with told(who, ConfigError, "look at the model's files"):
                return open_it()
        except ConfigError as error:  # not an endpoint that is busy, say: that may be asked again
            self._failed[own] = time.monotonic(), str(error)
            raise ModelUnusable(str(error)) from error
