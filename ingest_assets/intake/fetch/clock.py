"""Time as an argument, and the one deadline that everything within a fetch obeys."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from ingest_assets.intake.fetch.errors import FetchTimeout


@dataclass(frozen=True, slots=True)
class Clock:
    """Two clocks and a nap, so that a test can let hours pass."""

    epoch_s: Callable[[], float] = time.time
    monotonic_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a fetch must have ended; `url` is as `shown` gives it."""

    url: str
    limit_s: float
    ends_s: float
    clock: Clock

    @classmethod
    def after(cls, limit_s: float, url: str, clock: Clock) -> "Deadline":
        """A deadline so many seconds from now."""
        return cls(url, limit_s, clock.monotonic_s() + limit_s, clock)

    def left_s(self) -> float:
        """Seconds left; raises `FetchTimeout` when there are none."""
        left = self.ends_s - self.clock.monotonic_s()
        if left <= 0:
            raise FetchTimeout(
                f"{self.url} was not complete after {self.limit_s:g} s; it is tried again, "
                "or raise fetch.total_timeout_s.",
                detail={"url": self.url},
            )
        return left
