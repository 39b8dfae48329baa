"""Run the batches of queued artifacts, and report the state of the queue."""

import math
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from ingest_assets.app.driver import Executor, RunReport, StageTotals, run_batches
from ingest_assets.app.home import Home
from ingest_assets.app.plan import batch_states, has_work
from ingest_assets.intake.queue.import_list import ArtifactList, ImportReport, new_artifact, parsed_object
from ingest_assets.intake.queue.metrics import QueueMetrics
from ingest_assets.intake.queue.queue import Filter, Retried
from ingest_assets.intake.queue.quotas import Quotas

# `ingest queue` gets these from here: commands do not import its room.
__all__ = ["ArtifactList", "Filter", "ImportReport", "Retried", "new_artifact", "parsed_object"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The number of artifacts still to be acquired, and when the first of them is due."""

    count: int = 0
    first_at: float = math.inf
    first_batch: str = ""


def read_waiting(home: Home, excluded: Collection[str] = ()) -> Waiting:
    """Return the waiting artifacts of all batches that are not excluded, without those not in a batch yet."""
    due = {key: value for key, value in home.queue.due_batches(math.inf).items() if key not in excluded}
    if not due:
        return Waiting()
    first = min(due, key=lambda key: due[key][1])
    return Waiting(sum(count for count, _ in due.values()), due[first][1], first)


def queue_object(home: Home) -> dict[str, Any]:
    """Return the artifacts per state, how many are waiting, and when the first is due, as a JSON object."""
    waiting = read_waiting(home)
    at = utc(waiting.first_at) if waiting.count else None
    return {"states": home.queue.stats(time.time()).states, "waiting": waiting.count, "next_at": at}


def stats_object(home: Home) -> dict[str, Any]:
    """Return all figures of the queue as a JSON object."""
    database, now = home.ledger.database, time.time()
    stats = home.queue.stats(now)
    use = Quotas(database, home.settings.queue.quotas).use()
    waiting = read_waiting(home)
    return {
        "home": str(home.layout.home),
        "total": stats.total,
        **asdict(stats),
        "next_at": utc(waiting.first_at) if waiting.count else None,
        "quotas": {api: asdict(counts) for api, counts in use.items()},
        "totals": asdict(QueueMetrics(database).totals()),
    }


def utc(at: float) -> str:
    """Format a time in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# Run the batches that have due artifacts; with `--drain`, also wait for artifacts that are not due yet.


# While waiting, check again after at most this time: other processes add and release artifacts.
MAX_WAIT_S, MIN_WAIT_S = 2.0, 0.05


@dataclass(slots=True)
class Drain:
    """Runs the batches of queued artifacts until none is due; with `waits`, until none is left.

    A batch that stopped with an error is not run again by this command, because it would stop again.
    """

    home: Home
    executor: Executor
    tell: Callable[[str], None]
    is_interrupted: Callable[[], bool] = lambda: False
    waits: bool = False
    report: RunReport = field(default_factory=RunReport)
    _revisions: dict[str, int] = field(default_factory=dict)
    _unfinished: dict[str, set[str]] = field(default_factory=dict)
    _announced: tuple[str, float] | None = None

    def __post_init__(self) -> None:
        self.report.stages = {stage: StageTotals() for stage in self.home.graph} | self.report.stages

    def run(self) -> RunReport:
        """Run until there is nothing to do or to wait for."""
        started = time.monotonic()
        while self._step():
            if self.is_interrupted():  # an interrupt while Dagster closes a run raises nothing
                raise KeyboardInterrupt
        self.report.wall_seconds = time.monotonic() - started
        return self.report

    def _step(self) -> bool:
        self.home.assign_batches()
        waiting = Waiting()
        ready = self._ready(time.time())
        if not ready and self.waits:
            waiting = read_waiting(self.home, excluded=self.report.broken)
        if not ready and not waiting.count:
            ready = self._changed_by_others(time.time())
        if ready:
            home, executor, report = self.home, self.executor, self.report
            run_batches(home, list(home.graph), {}, executor, reason="queue", only=ready, report=report)
        elif waiting.count:
            self._wait(waiting)
        return bool(ready or waiting.count)

    def _ready(self, now: float) -> set[str]:
        """Return batches with due artifacts, and incomplete batches that changed since the last call.

        The first call checks all batches, and so finds the work of an interrupted command.
        """
        before, self._revisions = self._revisions, self.home.ledger.batches()
        changed = [(key, at) for key, at in self._revisions.items() if before.get(key) != at]
        ready = set(self.home.queue.due_batches(now))
        for batch, revision in changed:
            # Batches of artifacts only: those of folders are for `ingest all`.
            is_queued = bool(self.home.queue.find(Filter(batch=batch), limit=1))
            if is_queued and has_work(self.home, batch, revision, now):
                states = batch_states(self.home, batch, due_at=now)
                if any(state.run or state.removed for state in states):  # empty tables can wait
                    ready.add(batch)
        return ready - set(self.report.broken)

    def _changed_by_others(self, now: float) -> set[str]:
        """Return batches to which another process, which may have ended, added documents after they ran here.

        Documents that failed here are not retried, and the same unfinished documents are not run twice.
        """
        changed = set()
        for batch in set(self.report.ran) - set(self.report.broken):
            states = batch_states(self.home, batch, due_at=now)
            failed = {error.item_id for error in self.report.errors_of[batch]}
            unfinished = {document for state in states for document in state.run} - failed
            if unfinished and unfinished != self._unfinished.get(batch):
                self._unfinished[batch] = unfinished
                changed.add(batch)
        return changed

    def _wait(self, waiting: Waiting) -> None:
        """Wait at most `MAX_WAIT_S`: another process may release an artifact early."""
        seconds = waiting.first_at - time.time()
        next_due = waiting.first_batch, waiting.first_at
        pending = self.home.pending_artifacts(waiting.first_batch) if next_due != self._announced else []
        if pending:
            # An artifact can be leased when it is due, or when the lease on it has expired.
            first = min(pending, key=lambda a: a.not_before if a.lease_expires is None else a.lease_expires)
            self._announced = next_due
            error = f" ({first.last_error.message})" if first.last_error else ""
            why = f"the next can be tried at {utc(first.not_before)}: {first.artifact_id}{error}"
            if first.lease_expires is not None:
                until = f"expires at {utc(first.lease_expires)} unless the worker extends it"
                why = f"{first.artifact_id} is leased by worker {first.leased_by}; the lease {until}"
            documents = "1 document" if waiting.count == 1 else f"{waiting.count} documents"
            self.tell(f"queue: waiting for {documents}; {why}")
        time.sleep(min(max(seconds, MIN_WAIT_S), MAX_WAIT_S))
