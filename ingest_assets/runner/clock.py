"""Time as an argument: what the coordinator reads and how it waits."""

import queue
import time
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Two clocks and a wait, so that a test can let hours pass."""

    def epoch_s(self) -> float: ...
    def monotonic_s(self) -> float: ...
    def wait(self, arrivals: "queue.SimpleQueue[T]", timeout_s: float | None) -> T | None: ...


class SystemClock:
    """The machine's time. Waiting costs nothing and ends at the first arrival or at a signal."""

    def epoch_s(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic_s(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def wait(self, arrivals: "queue.SimpleQueue[T]", timeout_s: float | None) -> T | None:
        """The next arrival, or nothing after `timeout_s`."""
        try:
            return arrivals.get(block=timeout_s != 0, timeout=timeout_s or None)
        except queue.Empty:
            return None
