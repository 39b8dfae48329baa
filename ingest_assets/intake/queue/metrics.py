"""What acquiring came to, for OpenTelemetry and for `ingest queue stats`: the same counts in both.

The ledger keeps the totals over all processes and restarts; a meter hears of each change in this process.
"""

import functools
import threading
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from opentelemetry import metrics
from opentelemetry.metrics import Meter

from ingest_assets.intake.database import Database
from ingest_assets.intake.queue.artifacts import State
from ingest_assets.intake.queue.queue import QueueStats
from ingest_assets.intake.schema import counters

SCOPE = "ingest_assets"
# From the copy of a small file to the default of fetch.total_timeout_s.
_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class _Instruments:
    def __init__(self, meter: Meter) -> None:
        self.depth = meter.create_gauge("queue_depth", "{artifact}", "Artifacts by state.")
        self.completed = meter.create_counter(
            "jobs_completed_total", "{artifact}", "Artifacts that ended, by state."
        )
        self.retries = meter.create_counter("retries_total", "{attempt}", "Attempts put back for later.")
        self.throttled = meter.create_counter(
            "throttled_total", "{attempt}", "Times that a quota or a resting host had to be waited for."
        )
        self.fetch_bytes = meter.create_counter("fetch_bytes_total", "By", "Bytes received.")
        self.fetch_seconds = meter.create_histogram(
            "fetch_seconds",
            "s",
            "How long an artifact took to acquire.",
            explicit_bucket_boundaries_advisory=_BUCKETS_S,
        )


@functools.cache
def _global_instruments() -> _Instruments:
    return _Instruments(metrics.get_meter(SCOPE))


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the ledger began."""

    completed: dict[str, int]
    retries: int
    throttled: int
    fetches: int
    fetch_bytes: int
    fetch_seconds: float


class Measures:
    """Counts in a meter, if somebody listens, and with each `store` in the ledger. Thread-safe."""

    def __init__(self, database: Database, meter: Meter | None = None) -> None:
        self._database = database
        self._meter = _Instruments(meter) if meter else _global_instruments()
        self._lock = threading.Lock()
        self._new: dict[str, float] = {}

    def completed(self, state: State, resolver: str) -> None:
        """An artifact ended."""
        self._meter.completed.add(1, {"state": state, "resolver": resolver})
        self._add({f"completed_{state}": 1})

    def retried(self, resolver: str) -> None:
        """An attempt failed and is made again later."""
        self._meter.retries.add(1, {"resolver": resolver})
        self._add({"retries": 1})

    def throttled(self, resolver: str) -> None:
        """A quota was used up, or a host rests."""
        self._meter.throttled.add(1, {"resolver": resolver})
        self._add({"throttled": 1})

    def fetched(self, size_bytes: int, seconds: float, resolver: str) -> None:
        """An attempt received so much in so long, whatever became of it."""
        self._meter.fetch_bytes.add(size_bytes, {"resolver": resolver})
        self._meter.fetch_seconds.record(seconds, {"resolver": resolver})
        self._add({"fetches": 1, "fetch_bytes": size_bytes, "fetch_seconds": seconds})

    def depth(self, stats: QueueStats) -> None:
        """How many artifacts are in each state now."""
        for state, count in stats.states.items():
            self._meter.depth.set(count, {"state": state})

    def totals(self) -> Totals:
        """Counts since the ledger began, over all processes."""
        with self._database.connect() as connection:
            found = {row.name: row.value for row in connection.execute(sa.select(counters))}
        endings = ("done", "skipped", "error")
        return Totals(
            completed={state: int(found.get(f"completed_{state}", 0)) for state in endings},
            retries=int(found.get("retries", 0)),
            throttled=int(found.get("throttled", 0)),
            fetches=int(found.get("fetches", 0)),
            fetch_bytes=int(found.get("fetch_bytes", 0)),
            fetch_seconds=found.get("fetch_seconds", 0.0),
        )

    def store(self) -> None:
        """Add to the ledger what was counted since the last time."""
        with self._lock:
            rows = [{"name": name, "value": amount} for name, amount in sorted(self._new.items())]
            self._new.clear()
        if not rows:
            return
        insert = self._database.insert(counters)
        more = insert.on_conflict_do_update(
            index_elements=["name"], set_={"value": counters.c.value + insert.excluded.value}
        )
        with self._database.begin() as connection:
            connection.execute(more, rows)

    def _add(self, amounts: Mapping[str, float]) -> None:
        with self._lock:
            for name, amount in amounts.items():
                self._new[name] = self._new.get(name, 0.0) + amount
