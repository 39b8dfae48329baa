"""When a request may be sent: quotas of a minute, pauses between attempts, and an end to all waiting."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ingest_assets.embedders.errors import EmbedderClosed

_MINUTE = 60.0


@dataclass(frozen=True)
class Pace:
    """How long to wait between attempts, and by which clocks."""

    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 30.0
    longest_asked_seconds: float = 60.0  # of what a server may ask for
    longest_silence_seconds: float = 300.0  # without an answer after a request was given up: it is over then
    verdict_seconds: float = 30.0  # how long a refusal of everything stands before it is asked for again
    monotonic: Callable[[], float] = time.monotonic
    epoch: Callable[[], float] = time.time
    chance: Callable[[], float] = random.random

    def pause(self, attempt: int, asked: float | None) -> float:
        """Twice as long each time, and a little by chance; or what the server asks for, if that is longer.

        At most `longest_asked_seconds` of it; a server that asks for none would be asked all at once.
        """
        doubled = self.first_pause_seconds * 2.0 ** min(attempt - 1, 30)
        usual = min(doubled, self.longest_pause_seconds) * (1 + 0.25 * self.chance())
        return usual if asked is None else max(usual, min(asked, self.longest_asked_seconds))


@dataclass(eq=False)
class Taken:
    """A share of a minute's quota; what it really was may be told later."""

    moment: float
    amount: int


@dataclass(eq=False)
class PerMinute:
    """At most `limit` in any minute; 0 = any number. What is larger than the limit goes alone."""

    limit: int
    _taken: deque[Taken] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, amount: int, now: float) -> Taken | float:
        """A share, or the seconds after which it is worth asking again."""
        if not self.limit:
            return Taken(now, amount)
        with self._lock:
            while self._taken and now - self._taken[0].moment >= _MINUTE:
                self._taken.popleft()
            excess = sum(share.amount for share in self._taken) + amount - self.limit
            if excess <= 0 or not self._taken:
                self._taken.append(Taken(now, amount))
                return self._taken[-1]
            for share in self._taken:
                excess -= share.amount
                if excess <= 0:
                    break
            return max(share.moment + _MINUTE - now, 1e-3)


class Waiting:
    """Waits that end at once when the embedder is closed."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._closed = threading.Event()
        self._not_before = pace.monotonic()

    def close(self) -> None:
        self._closed.set()

    def hold_all(self, seconds: float) -> None:
        """The server asked for a pause: it concerns everyone who asks it."""
        self._not_before = max(self._not_before, self._pace.monotonic() + seconds)

    def until_free(self) -> None:
        """Wait for the end of a pause that the server asked for."""
        self.pause(self._not_before - self._pace.monotonic())

    def share(self, quota: PerMinute, amount: int) -> Taken:
        """Wait for a share of a quota."""
        while not isinstance(taken := quota.take(amount, self._pace.monotonic()), Taken):
            self.pause(taken)
        return taken

    def pause(self, seconds: float) -> None:
        """Sleep, unless the embedder is or gets closed: then there is nothing to wait for."""
        if self._closed.wait(max(0.0, seconds)):
            raise EmbedderClosed("The embedder was closed while a request waited.")
