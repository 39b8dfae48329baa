"""Limits per host: a pause between requests, and a longer one on `Retry-After` or repeated failures.

The state is in memory, per process. The limits on leases apply over all processes and machines.
"""

import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from ingest_assets.intake.fetch.errors import HostPaused
from ingest_assets.intake.fetch.network import Clock
from ingest_assets.settings.intake import FetchOptions

MAX_HOSTS = 10_000  # above this, hosts without a failure or a wait are dropped


@dataclass(slots=True)
class _Host:
    next_turn_s: float = float("-inf")
    failures: int = 0
    broken_until_s: float = float("-inf")
    retry_after_until_s: float = float("-inf")

    def paused_until_s(self) -> float:
        return max(self.broken_until_s, self.retry_after_until_s)


class Hosts:
    """State of all hosts. Thread-safe. A paused host raises at once, with the time when the pause ends."""

    def __init__(self, options: FetchOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = {}

    def take_turn(self, host: str, patience_s: float) -> float:
        """Reserve the next request to this host and return the seconds to wait before it.

        Raises `HostPaused`, without a reservation, if the wait exceeds `patience_s`.
        """
        with self._lock:
            now = self._clock.monotonic_s()
            known = self._known(host, now)
            if known.paused_until_s() > now:
                is_asked = known.retry_after_until_s >= known.broken_until_s
                reason = "it sent Retry-After" if is_asked else f"its last {known.failures} requests failed"
                raise self._paused(host, known.paused_until_s() - now, reason)
            if known.failures >= self._options.breaker_failures:
                # One request probes the host; the others wait for its result, or for another pause if there
                # is none.
                known.broken_until_s = now + self._options.breaker_open_s
            turn_s = max(now, known.next_turn_s)
            if turn_s - now > patience_s:
                raise self._paused(host, turn_s - now, "other requests are waiting for it")
            known.next_turn_s = turn_s + self._options.politeness_delay_s
            return turn_s - now

    def _paused(self, host: str, seconds: float, reason: str) -> HostPaused:
        until = datetime.fromtimestamp(self._clock.epoch_s() + seconds, UTC)
        return HostPaused(
            f"{host} is paused until {until:%Y-%m-%d %H:%M:%S} UTC: {reason}.",
            detail={"host": host, "retry_after_s": seconds},
        )

    def answered(self, host: str) -> None:
        """Record a response of any kind, which resets the failures."""
        with self._lock:
            known = self._hosts.get(host)
            if known is not None:
                known.failures = 0
                known.broken_until_s = float("-inf")

    def failed(self, host: str) -> None:
        """Record a failure; after several in a row the host is paused."""
        with self._lock:
            now = self._clock.monotonic_s()
            known = self._known(host, now)
            known.failures += 1
            if known.failures >= self._options.breaker_failures:
                known.broken_until_s = now + self._options.breaker_open_s

    def pause(self, host: str, seconds: float) -> None:
        """Pause the host for its `Retry-After`; a shorter pause does not end a longer one."""
        with self._lock:
            now = self._clock.monotonic_s()
            known = self._known(host, now)
            known.retry_after_until_s = max(known.retry_after_until_s, now + seconds)

    def _known(self, host: str, now: float) -> _Host:
        if host not in self._hosts and len(self._hosts) >= MAX_HOSTS:
            self._hosts = {
                name: known
                for name, known in self._hosts.items()
                if known.failures > 0 or max(known.next_turn_s, known.paused_until_s()) > now
            }
        return self._hosts.setdefault(host, _Host())
