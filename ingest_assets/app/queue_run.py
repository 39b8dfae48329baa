"""Run what is queued, and say what the queue holds and waits for."""

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
from ingest_assets.intake.queue.metrics import Measures
from ingest_assets.intake.queue.queue import Filter, Retried
from ingest_assets.intake.queue.quotas import Quotas

# What `ingest queue` puts in and gets back.
__all__ = ["ArtifactList", "Filter", "ImportReport", "Retried", "new_artifact", "parsed_object"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Artifacts that are still to be acquired, and when the first of them can be tried."""

    count: int = 0
    first_at: float = math.inf
    first_batch: str = ""


def read_waiting(home: Home, but_not: Collection[str] = ()) -> Waiting:
    """Of all batches but some; artifacts that have no batch yet are not counted."""
    found = {key: value for key, value in home.queue.due_batches(math.inf).items() if key not in but_not}
    if not found:
        return Waiting()
    first = min(found, key=lambda key: found[key][1])
    return Waiting(sum(count for count, _ in found.values()), found[first][1], first)


def queue_object(home: Home) -> dict[str, Any]:
    """States, and how many artifacts are still to be acquired from when on."""
    waiting = read_waiting(home)
    at = utc(waiting.first_at) if waiting.count else None
    return {"states": home.queue.stats(time.time()).states, "waiting": waiting.count, "next_at": at}


def stats_object(home: Home) -> dict[str, Any]:
    """Everything the ledger knows of the queue in figures."""
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
        "totals": asdict(Measures(database).totals()),
    }


def utc(at: float) -> str:
    """A time that is the same for everybody who reads it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# Running what is queued: the batches that have something due, and with patience also what waits.


# Other processes add and free artifacts meanwhile, so a wait is cut into looks.
LONGEST_LOOK_S, SHORTEST_LOOK_S = 2.0, 0.05


@dataclass(slots=True)
class Drain:
    """Runs the batches of queued artifacts until none is due; with `waits`, until none is left.

    A batch that breaks is not run again by this command: whatever broke it would do so again.
    """

    home: Home
    executor: Executor
    tell: Callable[[str], None]
    is_interrupted: Callable[[], bool] = lambda: False
    waits: bool = False
    report: RunReport = field(default_factory=RunReport)
    _revisions: dict[str, int] = field(default_factory=dict)
    _left: dict[str, set[str]] = field(default_factory=dict)
    _told: tuple[str, float] | None = None

    def __post_init__(self) -> None:
        self.report.stages = {stage: StageTotals() for stage in self.home.graph} | self.report.stages

    def run(self) -> RunReport:
        """Until there is nothing more to do or to wait for."""
        started = time.monotonic()
        while self._step():
            if self.is_interrupted():  # one that came while Dagster closed a run raises nothing
                raise KeyboardInterrupt
        self.report.wall_seconds = time.monotonic() - started
        return self.report

    def _step(self) -> bool:
        self.home.give_homes()
        waiting = Waiting()
        ready = self._ready(time.time())
        if not ready and self.waits:
            waiting = read_waiting(self.home, but_not=self.report.broken)
        if not ready and not waiting.count:
            ready = self._left_by_others(time.time())
        if ready:
            home, executor, report = self.home, self.executor, self.report
            run_batches(home, list(home.graph), {}, executor, reason="queue", only=ready, report=report)
        elif waiting.count:
            self._wait(waiting)
        return bool(ready or waiting.count)

    def _ready(self, now: float) -> set[str]:
        """Batches with artifacts that are due, and those that changed since the last look and are not done.

        At the first look all have changed: what an interrupted command left is found by that.
        """
        before, self._revisions = self._revisions, self.home.ledger.batches()
        changed = [(key, at) for key, at in self._revisions.items() if before.get(key) != at]
        found = set(self.home.queue.due_batches(now))
        for batch, revision in changed:
            # Batches of artifacts only: those of folders are for `ingest all`.
            is_queued = bool(self.home.queue.find(Filter(batch=batch), limit=1))
            if is_queued and has_work(self.home, batch, revision, now):
                states = batch_states(self.home, batch, due_at=now)
                if any(state.run or state.removed for state in states):  # tables for nothing can wait
                    found.add(batch)
        return found - set(self.report.broken)

    def _left_by_others(self, now: float) -> set[str]:
        """Batches to which another process brought documents after ours were planned; it may be gone by now.

        What failed here is not tried again, and what a run did not get done is not run for a second time.
        """
        found = set()
        for batch in set(self.report.ran) - set(self.report.broken):
            states = batch_states(self.home, batch, due_at=now)
            failed = {error.item_id for error in self.report.errors_of[batch]}
            left = {document for state in states for document in state.run} - failed
            if left and left != self._left.get(batch):
                self._left[batch] = left
                found.add(batch)
        return found

    def _wait(self, waiting: Waiting) -> None:
        """A few seconds at a stretch: what others hold may be free before its time."""
        seconds = waiting.first_at - time.time()
        told = waiting.first_batch, waiting.first_at
        awaited = self.home.awaited(waiting.first_batch) if told != self._told else []
        if awaited:
            # One can be taken when its time has come, or its worker has been silent for too long.
            first = min(awaited, key=lambda a: a.not_before if a.lease_expires is None else a.lease_expires)
            self._told = told
            error = f" ({first.last_error.message})" if first.last_error else ""
            why = f"the next can be tried at {utc(first.not_before)}: {first.artifact_id}{error}"
            if first.lease_expires is not None:
                until = f"until it ends or, should that fall silent, until {utc(first.lease_expires)}"
                why = f"{first.artifact_id} is with worker {first.leased_by} {until}"
            self.tell(f"queue: waiting for {waiting.count} artifacts; {why}")
        time.sleep(min(max(seconds, SHORTEST_LOOK_S), LONGEST_LOOK_S))
