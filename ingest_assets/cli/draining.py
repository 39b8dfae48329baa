"""Running what is queued: the batches that have something due, and with patience also what waits."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ingest_assets.cli.interrupts import PRESSES
from ingest_assets.cli.queue_state import Waiting, first_waiting, read_waiting, utc
from ingest_assets.cli.runs import RunReport, StageTotals, run_batches
from ingest_assets.defs.completeness import batch_states, is_batch_complete
from ingest_assets.defs.home import Home
from ingest_assets.intake.artifacts import Artifact
from ingest_assets.intake.inbox import Filter

LONGEST_LOOK_S, SHORTEST_LOOK_S = 2.0, 0.05


@dataclass(slots=True)
class Drain:
    """Runs the batches of queued artifacts until none is due; with `waits`, until none is left.

    A batch that breaks is not run again by this command: whatever broke it would do so again.
    """

    home: Home
    tell: Callable[[str], None]
    waits: bool = False
    progress: str = "log"
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
            if PRESSES.count:  # one that came while Dagster closed a run raises nothing
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
            run_batches(
                self.home,
                list(self.home.graph),
                {},
                reason="queue",
                progress=self.progress,
                only=ready,
                report=self.report,
            )
        elif waiting.count:
            self._wait(waiting)
        return bool(ready or waiting.count)

    def _ready(self, now: float) -> set[str]:
        """Batches with artifacts that are due, and those that changed since the last look and are not done.

        At the first look all have changed: what an interrupted command left is found by that.
        """
        before, self._revisions = self._revisions, self.home.ledger.batches()
        changed = [(key, at) for key, at in self._revisions.items() if before.get(key) != at]
        found = {key for key, at in changed if self._is_queued(key) and self._has_work(key, at, now)}
        return (found | set(self.home.queue.due_batches(now))) - set(self.report.broken)

    def _is_queued(self, batch: str) -> bool:
        """True for a batch of artifacts; those of folders are for `ingest all`."""
        return bool(self.home.queue.find(Filter(batch=batch), limit=1))

    def _has_work(self, batch: str, revision: int, now: float) -> bool:
        """True when a document is to be run or removed now; tables for nothing can wait."""
        if is_batch_complete(self.home, batch, revision):
            return False
        return any(state.run or state.removed for state in batch_states(self.home, batch, due_at=now))

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
        if told != self._told and (first := first_waiting(self.home, waiting.first_batch)) is not None:
            self._told = told
            self.tell(f"queue: waiting for {waiting.count} artifacts; {_why(first)}")
        time.sleep(min(max(seconds, SHORTEST_LOOK_S), LONGEST_LOOK_S))


def _why(first: Artifact) -> str:
    """What the next artifact waits for, and until when."""
    if first.lease_expires is not None:
        until = f"until it ends or, should that fall silent, until {utc(first.lease_expires)}"
        return f"{first.artifact_id} is with worker {first.leased_by} {until}"
    error = f" ({first.last_error.message})" if first.last_error else ""
    return f"the next can be tried at {utc(first.not_before)}: {first.artifact_id}{error}"
