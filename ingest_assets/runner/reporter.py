"""Reports of one run: counts, manifest rows, progress, telemetry and hooks."""

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ingest_assets.core.errors import ItemCancelled, StageError, caught
from ingest_assets.core.items import Percentiles, Result, StageOutcome, Verdict, WorkItem
from ingest_assets.runner.attempt import Attempt, error_record, exec_s, queue_s
from ingest_assets.runner.manifest import ManifestRow
from ingest_assets.runner.schedule import Ticket
from ingest_assets.runner.telemetry import StageTelemetry

if TYPE_CHECKING:
    from ingest_assets.runner.run import RunSpec

# Statistics of a running stage, in memory that does not grow with the plan.
RESERVOIR_SIZE = 1024
MAX_WARNINGS = 100  # a hook that always fails repeats its warning for each item


class Reservoir:
    """A uniform sample of a stream: exact up to its size, then within about one percent."""

    def __init__(self, rng: random.Random, size: int = RESERVOIR_SIZE) -> None:
        self._rng, self._size, self._seen = rng, size, 0
        self._sample: list[float] = []

    def add(self, value: float) -> None:
        """Add a value; all values so far are in the sample with equal probability."""
        self._seen += 1
        if len(self._sample) < self._size:
            self._sample.append(value)
        elif (index := self._rng.randrange(self._seen)) < self._size:
            self._sample[index] = value

    def percentiles(self) -> Percentiles:
        """Return percentiles by nearest rank; zeros if nothing was added."""
        if not self._sample:
            return Percentiles()
        ordered = sorted(self._sample)
        p50, p95, p99 = (ordered[int(share * len(ordered))] for share in (0.5, 0.95, 0.99))
        return Percentiles(p50=p50, p95=p95, p99=p99)


class Tally:
    """Counts of a running stage. Scheduled items that neither succeed nor fail are cancelled."""

    def __init__(self, rng: random.Random) -> None:
        self.scheduled = self.skipped = self.known_failures = 0
        self.succeeded = self.failed = self.retries = self.rows = 0
        self.cpu_s = 0.0
        self.cancelled_reason: str | None = None
        self._counts: dict[str, int] = {}
        self._errors: list[tuple[int, StageError]] = []
        self._warnings: list[str] = []
        self._more_warnings = 0
        self.queue_s, self.exec_s = Reservoir(rng), Reservoir(rng)

    @property
    def done(self) -> int:
        """Number of items that are complete."""
        return self.succeeded + self.skipped + self.failed

    def count(self, counts: Mapping[str, int]) -> None:
        """Add the counters of one attempt, failed or not."""
        for name, number in counts.items():
            self._counts[name] = self._counts.get(name, 0) + number

    def succeed(self, result: Result) -> None:
        """Count a successful item and its rows."""
        self.succeeded += 1
        self.rows += result.rows

    def fail(self, plan_order: int, error: StageError) -> None:
        """Count a failed item and store its last error."""
        self.failed += 1
        self._errors.append((plan_order, error))

    def warn(self, text: str) -> None:
        """Store the first `MAX_WARNINGS` warnings and count the others."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(text)
        else:
            self._more_warnings += 1

    def outcome(self, spec: "RunSpec", wall_s: float) -> StageOutcome:
        """Return the outcome with the counts so far."""
        more = [f"and {self._more_warnings} more warnings"] if self._more_warnings else []
        return StageOutcome(
            stage=spec.plan.stage,
            policy=spec.options.policy,
            workers=spec.backend.workers,
            workers_reason=spec.workers_reason,
            scheduled=self.scheduled,
            skipped=self.skipped,
            known_failures=self.known_failures,
            succeeded=self.succeeded,
            failed=self.failed,
            cancelled=self.scheduled - self.succeeded - self.failed,
            cancelled_reason=self.cancelled_reason,
            rows=self.rows,
            counts=dict(sorted(self._counts.items())),
            retries=self.retries,
            wall_s=wall_s,
            cpu_s=self.cpu_s,
            items_per_s=(self.succeeded + self.failed) / wall_s if wall_s > 0 else 0.0,
            queue_s=self.queue_s.percentiles(),
            exec_s=self.exec_s.percentiles(),
            errors=tuple(error for _, error in sorted(self._errors, key=lambda entry: entry[0])),
            warnings=(*self._warnings, *more),
        )


PROGRESS_INTERVAL_S = 0.1
_log = logging.getLogger("ingest_assets.runner")


class Reporter:
    """Calls telemetry, hooks, progress and manifest; their exceptions become warnings of the outcome."""

    def __init__(self, spec: "RunSpec", tally: Tally) -> None:
        self._spec, self._tally = spec, tally
        self._stage, self._hooks, self._progress = spec.plan.stage, spec.hooks, spec.progress
        self._manifest, self._clock = spec.manifest, spec.clock
        self._telemetry: StageTelemetry | None = None
        self.records_items = False
        self._started_s = self._reported_at_s = spec.clock.monotonic_s()

    def start(self) -> None:
        """Open telemetry, hooks and progress."""
        self._guard("the telemetry", self._begin_telemetry)
        self._guard("the before_stage hook", lambda: self._hooks.before_stage(self._stage))
        self._guard("the progress display", lambda: self._progress.start(self._stage, self._spec.plan.total))

    def before_item(self, item: WorkItem) -> None:
        """Report that an item starts its first attempt."""
        self._guard(f"the before_item hook of {item.item_id}", lambda: self._hooks.before_item(item))

    def before_attempt(self, ticket: Ticket) -> None:
        """Report that an attempt is submitted."""
        self._notify_telemetry(lambda telemetry: telemetry.attempt_started(ticket))

    def item_skipped(self, item: WorkItem, verdict: Verdict) -> None:
        """Report that an item does not run."""
        if self.records_items:
            now_s = self._clock.epoch_s()
            self._notify_telemetry(lambda telemetry: telemetry.item_skipped(item, verdict, now_s))

    def item_ended(self, ticket: Ticket, attempt: Attempt) -> None:
        """Report an item's end to telemetry, before hooks in which an interrupt can be raised."""
        self._notify_telemetry(lambda telemetry: telemetry.item_ended(ticket, attempt))

    def after_item(self, item: WorkItem, attempt: Attempt) -> None:
        """Call the hooks after an item has succeeded or finally failed."""
        if attempt.result is not None:
            for warning in attempt.result.warnings:
                self._tally.warn(f"{item.item_id}: {warning}")
        self._guard(
            f"the after_item hook of {item.item_id}",
            lambda: self._hooks.after_item(item, attempt.result, attempt.error),
        )

    def record(self, ticket: Ticket, attempt: Attempt) -> None:
        """Record an attempt: times, telemetry and the manifest's row."""
        self._tally.queue_s.add(queue_s(ticket, attempt))
        self._tally.exec_s.add(exec_s(attempt))
        self._tally.cpu_s += attempt.cpu_s
        result, error = attempt.result, attempt.error
        self._append_row(
            ticket,
            attempt.ended_epoch_s,
            status="done" if error is None else "failed",
            outputs=result.outputs if result else (),
            counts={**({"rows": result.rows} if result else {}), **attempt.counts},
            timings={
                "queue_s": round(queue_s(ticket, attempt), 6),
                "exec_s": round(exec_s(attempt), 6),
                "cpu_s": round(attempt.cpu_s, 6),
            },
            error=error.model_dump() if error else None,
        )
        self._notify_telemetry(lambda telemetry: telemetry.attempt_ended(ticket, attempt))

    def report_progress(self) -> None:
        """Update the progress display, at most ten times per second."""
        now_s = self._clock.monotonic_s()
        if now_s - self._reported_at_s >= PROGRESS_INTERVAL_S:
            self._reported_at_s = now_s
            self._update_progress()
            counts = self._tally.succeeded, self._tally.failed, self._tally.skipped
            self._notify_telemetry(lambda telemetry: telemetry.count(*counts))

    def close_backend(self) -> None:
        """Close the backend. An error is only a warning, because all items are accounted for."""
        self._guard("the backend's close", lambda: self._spec.backend.close(0))

    def finish(self, unfinished: Sequence[Ticket]) -> StageOutcome:
        """Record cancelled items, close everything and return the outcome. Always called."""
        wall_s = self._clock.monotonic_s() - self._started_s

        def outcome() -> StageOutcome:
            """Return the outcome with the warnings so far, also those of earlier listeners."""
            return self._tally.outcome(self._spec, wall_s)

        for ticket in unfinished:
            self._record_cancelled(ticket)
        if self._manifest is not None:
            self._guard("the manifest", self._manifest.close)
        now_s = self._clock.epoch_s()
        self._notify_telemetry(lambda telemetry: telemetry.finish(outcome(), now_s))
        try:
            self._update_progress()
            self._guard("the progress display", lambda: self._progress.finish(outcome()))
        finally:  # hooks must close what they opened even if an interrupt stops the display
            self._guard("the after_stage hook", lambda: self._hooks.after_stage(outcome()))
        if (flush := self._spec.telemetry.flush) is not None:
            self._guard("the telemetry", flush)
        return outcome()

    def _record_cancelled(self, ticket: Ticket) -> None:
        reason, now_s = self._tally.cancelled_reason or "cancelled", self._clock.epoch_s()
        error = error_record(ItemCancelled(reason), stage=self._stage, item_id=ticket.item.item_id)
        self._append_row(ticket, now_s, status="cancelled", error=error.model_dump())
        self._notify_telemetry(lambda telemetry: telemetry.item_cancelled(ticket, reason, now_s))

    def _append_row(self, ticket: Ticket, finished_epoch_s: float, **fields: Any) -> None:
        if (manifest := self._manifest) is None:
            return
        row = ManifestRow(
            stage=self._stage,
            item_id=ticket.item.item_id,
            attempt_no=ticket.attempt_no,
            run_id=self._spec.run_id,
            fingerprint=ticket.item.fingerprint,
            cfg_hash=ticket.item.cfg_hash,
            finished_at=datetime.fromtimestamp(finished_epoch_s, UTC).isoformat(timespec="milliseconds"),
            **fields,
        )
        self._guard("the manifest", lambda: manifest.append(row))

    def _update_progress(self) -> None:
        tally = self._tally
        self._guard(
            "the progress display",
            lambda: self._progress.update(tally.done, tally.succeeded, tally.skipped, tally.failed),
        )

    def _begin_telemetry(self) -> None:
        spec = self._spec
        self._telemetry = spec.telemetry.begin(
            stage=self._stage,
            policy=spec.options.policy,
            workers=spec.backend.workers,
            run_id=spec.run_id,
            now_epoch_s=self._clock.epoch_s(),
        )
        self.records_items = self._telemetry.records_spans

    def _notify_telemetry(self, notify: Callable[[StageTelemetry], None]) -> None:
        if (telemetry := self._telemetry) is not None:
            self._guard("the telemetry", lambda: notify(telemetry))

    def _guard(self, listener: str, call: Callable[[], None]) -> None:
        _, error = caught(call)
        if error is not None:
            text = f"{listener} raised {type(error).__name__}: {error}"
            _log.warning("%s: %s", self._stage, text)
            self._tally.warn(text)


class QuietHooks:
    """Hooks that do nothing: the default, and a base class for hooks that implement only some calls."""

    def before_stage(self, stage: str) -> None:
        """Called once, before the plan is read."""

    def after_stage(self, outcome: StageOutcome) -> None:
        """Called once, also if the stage was cancelled or interrupted."""

    def before_item(self, item: WorkItem) -> None:
        """Called before an item's first attempt, in the coordinator."""

    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None:
        """Called when an item has succeeded or finally failed, in the coordinator."""


NO_HOOKS = QuietHooks()
