"""Counts of acquisition, the same for OpenTelemetry and `ingest queue stats`.

The ledger stores the totals over all processes and restarts; a meter records the changes in this process.
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
# From copying a small file to the default of fetch.total_timeout_s.
_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class _Instruments:
    def __init__(self, meter: Meter) -> None:
        self.depth = meter.create_gauge("queue_depth", "{artifact}", "Artifacts by state.")
        self.completed = meter.create_counter(
            "jobs_completed_total", "{artifact}", "Artifacts that ended, by state."
        )
        self.retries = meter.create_counter("retries_total", "{attempt}", "Failed attempts to be retried.")
        self.throttled = meter.create_counter(
            "throttled_total", "{attempt}", "Waits for a quota or a paused host."
        )
        self.fetch_bytes = meter.create_counter("fetch_bytes_total", "By", "Bytes received.")
        self.fetch_seconds = meter.create_histogram(
            "fetch_seconds",
            "s",
            "Seconds to acquire an artifact.",
            explicit_bucket_boundaries_advisory=_BUCKETS_S,
        )


@functools.cache
def _global_instruments() -> _Instruments:
    return _Instruments(metrics.get_meter(SCOPE))


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the ledger was created."""

    completed: dict[str, int]
    retries: int
    throttled: int
    fetches: int
    fetch_bytes: int
    fetch_seconds: float


class QueueMetrics:
    """Counts in a meter, and in the ledger with each `store`. Thread-safe."""

    def __init__(self, database: Database, meter: Meter | None = None) -> None:
        self._database = database
        self._meter = _Instruments(meter) if meter else _global_instruments()
        self._lock = threading.Lock()
        self._new: dict[str, float] = {}

    def completed(self, state: State, resolver: str) -> None:
        """Count an artifact that ended."""
        self._meter.completed.add(1, {"state": state, "resolver": resolver})
        self._add({f"completed_{state}": 1})

    def retried(self, resolver: str) -> None:
        """Count a failed attempt that will be retried."""
        self._meter.retries.add(1, {"resolver": resolver})
        self._add({"retries": 1})

    def throttled(self, resolver: str) -> None:
        """Count a wait for a quota or a paused host."""
        self._meter.throttled.add(1, {"resolver": resolver})
        self._add({"throttled": 1})

    def fetched(self, size_bytes: int, seconds: float, resolver: str) -> None:
        """Count the bytes and the time of an attempt, successful or not."""
        self._meter.fetch_bytes.add(size_bytes, {"resolver": resolver})
        self._meter.fetch_seconds.record(seconds, {"resolver": resolver})
        self._add({"fetches": 1, "fetch_bytes": size_bytes, "fetch_seconds": seconds})

    def depth(self, stats: QueueStats) -> None:
        """Record how many artifacts are in each state now."""
        for state, count in stats.states.items():
            self._meter.depth.set(count, {"state": state})

    def totals(self) -> Totals:
        """Return the counts since the ledger was created, over all processes."""
        with self._database.connect() as connection:
            counts = {row.name: row.value for row in connection.execute(sa.select(counters))}
        endings = ("done", "skipped", "error")
        return Totals(
            completed={state: int(counts.get(f"completed_{state}", 0)) for state in endings},
            retries=int(counts.get("retries", 0)),
            throttled=int(counts.get("throttled", 0)),
            fetches=int(counts.get("fetches", 0)),
            fetch_bytes=int(counts.get("fetch_bytes", 0)),
            fetch_seconds=counts.get("fetch_seconds", 0.0),
        )

    def store(self) -> None:
        """Add the counts since the last call to the ledger."""
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
