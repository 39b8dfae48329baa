"""How each host is treated: a pause between requests, a rest when it asks for one or keeps failing.

Held in memory and per process; the caps of the ledger's leases hold over processes and machines.
"""

import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from ingest_assets.intake.fetch.errors import HostResting
from ingest_assets.intake.fetch.network import Clock
from ingest_assets.settings.intake import FetchOptions

MAX_REMEMBERED = 10_000  # hosts; past this, those without a failure or a wait are forgotten


@dataclass(slots=True)
class _Host:
    next_turn_s: float = float("-inf")
    failures: int = 0
    broken_until_s: float = float("-inf")
    asked_until_s: float = float("-inf")

    def rests_until_s(self) -> float:
        return max(self.broken_until_s, self.asked_until_s)


class Hosts:
    """Thread-safe. A host that rests is refused at once, with an error that says until when."""

    def __init__(self, options: FetchOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = {}

    def take_turn(self, host: str, patience_s: float) -> float:
        """Seconds to wait before a request to this host, which is then ours to make.

        A wait beyond `patience_s` is refused, and the turn left to others.
        """
        with self._lock:
            now = self._clock.monotonic_s()
            known = self._known(host, now)
            if known.rests_until_s() > now:
                is_asked = known.asked_until_s >= known.broken_until_s
                reason = "it asked for a pause" if is_asked else f"its last {known.failures} requests failed"
                raise self._resting(host, known.rests_until_s() - now, reason)
            if known.failures >= self._options.breaker_failures:
                # One request may try; the others wait for what it finds, or for as long again if it says
                # nothing.
                known.broken_until_s = now + self._options.breaker_open_s
            turn_s = max(now, known.next_turn_s)
            if turn_s - now > patience_s:
                raise self._resting(host, turn_s - now, "others wait for it already")
            known.next_turn_s = turn_s + self._options.politeness_delay_s
            return turn_s - now

    def _resting(self, host: str, seconds: float, reason: str) -> HostResting:
        until = datetime.fromtimestamp(self._clock.epoch_s() + seconds, UTC)
        return HostResting(
            f"{host} is left alone until {until:%Y-%m-%d %H:%M:%S} UTC, as {reason}; it is tried then.",
            detail={"host": host, "retry_after_s": seconds},
        )

    def answered(self, host: str) -> None:
        """The host is well, whatever it said."""
        with self._lock:
            known = self._hosts.get(host)
            if known is not None:
                known.failures = 0
                known.broken_until_s = float("-inf")

    def failed(self, host: str) -> None:
        """The host did not do its part; after several times in a row it is left alone."""
        with self._lock:
            now = self._clock.monotonic_s()
            known = self._known(host, now)
            known.failures += 1
            if known.failures >= self._options.breaker_failures:
                known.broken_until_s = now + self._options.breaker_open_s

    def rest(self, host: str, seconds: float) -> None:
        """The host asked for a pause (`Retry-After`); a shorter one than before does not end that."""
        with self._lock:
            now = self._clock.monotonic_s()
            known = self._known(host, now)
            known.asked_until_s = max(known.asked_until_s, now + seconds)

    def _known(self, host: str, now: float) -> _Host:
        if host not in self._hosts and len(self._hosts) >= MAX_REMEMBERED:
            self._hosts = {
                name: known
                for name, known in self._hosts.items()
                if known.failures > 0 or max(known.next_turn_s, known.rests_until_s()) > now
            }
        return self._hosts.setdefault(host, _Host())
