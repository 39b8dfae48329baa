"""Everybody who is told about a stage, from hooks to telemetry. None of them can make an item fail."""

import logging
from collections.abc import Callable, Sequence

from ingest_assets.model.items import WorkItem
from ingest_assets.model.outcomes import StageOutcome, Verdict
from ingest_assets.runner.attempt import Attempt, caught
from ingest_assets.runner.records import cancelled_row, exec_s, queue_s, row_of
from ingest_assets.runner.setup import Setup
from ingest_assets.runner.tally import Tally
from ingest_assets.runner.telemetry import StageTelemetry
from ingest_assets.runner.tickets import Ticket

PROGRESS_INTERVAL_S = 0.1
_log = logging.getLogger("ingest_assets.runner")


class Reporter:
    """Tells everybody, and turns their exceptions into warnings of the outcome."""

    def __init__(self, setup: Setup, tally: Tally) -> None:
        self._setup, self._tally = setup, tally
        self._stage, self._hooks, self._progress = setup.stage, setup.hooks, setup.progress
        self._manifest, self._clock = setup.manifest, setup.clock
        self._telemetry: StageTelemetry | None = None
        self.records_items = False
        self._started_s = self._told_at_s = setup.clock.monotonic_s()
        self._ended_s: float | None = None

    def start(self) -> None:
        """Open telemetry, hooks and progress."""
        self._guard("the telemetry", self._begin_telemetry)
        self._guard("the before_stage hook", lambda: self._hooks.before_stage(self._stage))
        self._guard("the progress display", lambda: self._progress.start(self._stage, self._setup.plan.total))

    def before_item(self, item: WorkItem) -> None:
        """An item is about to start for the first time."""
        self._guard(f"the before_item hook of {item.item_id}", lambda: self._hooks.before_item(item))

    def before_attempt(self, ticket: Ticket) -> None:
        """A worker is about to get the item."""
        self._tell_telemetry(lambda telemetry: telemetry.attempt_starts(ticket))

    def skipped(self, item: WorkItem, verdict: Verdict) -> None:
        """An item need not run."""
        if self.records_items:
            now_s = self._clock.epoch_s()
            self._tell_telemetry(lambda telemetry: telemetry.item_skipped(item, verdict, now_s))

    def settled(self, ticket: Ticket, attempt: Attempt) -> None:
        """An item succeeded or failed for good: told with the count, whatever interrupts the hooks."""
        self._tell_telemetry(lambda telemetry: telemetry.item_ended(ticket, attempt))

    def after_item(self, item: WorkItem, attempt: Attempt) -> None:
        """The hooks' turn, after an item has succeeded or failed for good."""
        if attempt.result is not None:
            for warning in attempt.result.warnings:
                self._tally.warn(f"{item.item_id}: {warning}")
        self._guard(
            f"the after_item hook of {item.item_id}",
            lambda: self._hooks.after_item(item, attempt.result, attempt.error),
        )

    def record(self, ticket: Ticket, attempt: Attempt) -> None:
        """One attempt ended: times, telemetry and the manifest's row."""
        self._tally.queue_s.add(queue_s(ticket, attempt))
        self._tally.exec_s.add(exec_s(attempt))
        self._tally.cpu_s += attempt.cpu_s
        if (manifest := self._manifest) is not None:
            row = row_of(ticket, attempt, stage=self._stage, run_id=self._setup.run_id)
            self._guard("the manifest", lambda: manifest.append(row))
        self._tell_telemetry(lambda telemetry: telemetry.attempt_ended(ticket, attempt))

    def report_progress(self) -> None:
        """At most ten times a second, however fast the items are."""
        now_s = self._clock.monotonic_s()
        if now_s - self._told_at_s >= PROGRESS_INTERVAL_S:
            self._told_at_s = now_s
            self._tell_progress()
            tally = self._tally
            self._tell_telemetry(lambda each: each.count(tally.succeeded, tally.failed, tally.skipped))

    def close_backend(self) -> None:
        """What cannot be closed is a warning: the items' own ends are known already."""
        self._guard("the backend's close", lambda: self._setup.backend.close(0))

    def finish(self, unfinished: Sequence[Ticket]) -> StageOutcome:
        """Record what was cancelled, then close everything; called on every way out."""
        self._ended_s = self._clock.monotonic_s()
        for ticket in unfinished:
            self._record_cancelled(ticket)
        if self._manifest is not None:
            self._guard("the manifest", self._manifest.close)
        now_s = self._clock.epoch_s()
        self._tell_telemetry(lambda telemetry: telemetry.finish(self._outcome(), now_s))
        try:
            self._tell_progress()
            self._guard("the progress display", lambda: self._progress.finish(self._outcome()))
        finally:  # an interrupt in the display must not leave open what the hooks opened
            self._guard("the after_stage hook", lambda: self._hooks.after_stage(self._outcome()))
        if (flush := self._setup.telemetry.flush) is not None:
            self._guard("the telemetry", flush)
        return self._outcome()

    def _record_cancelled(self, ticket: Ticket) -> None:
        reason, now_s = self._tally.cancelled_reason or "cancelled", self._clock.epoch_s()
        if (manifest := self._manifest) is not None:
            row = cancelled_row(
                ticket, reason, stage=self._stage, run_id=self._setup.run_id, now_epoch_s=now_s
            )
            self._guard("the manifest", lambda: manifest.append(row))
        self._tell_telemetry(lambda telemetry: telemetry.item_cancelled(ticket, reason, now_s))

    def _tell_progress(self) -> None:
        tally = self._tally
        self._guard(
            "the progress display",
            lambda: self._progress.update(tally.done, tally.succeeded, tally.skipped, tally.failed),
        )

    def _begin_telemetry(self) -> None:
        setup = self._setup
        self._telemetry = setup.telemetry.begin(
            stage=self._stage,
            policy=setup.options.policy,
            workers=setup.backend.workers,
            run_id=setup.run_id,
            now_epoch_s=self._clock.epoch_s(),
        )
        self.records_items = self._telemetry.records_spans

    def _tell_telemetry(self, tell: Callable[[StageTelemetry], None]) -> None:
        if (telemetry := self._telemetry) is not None:
            self._guard("the telemetry", lambda: tell(telemetry))

    def _outcome(self) -> StageOutcome:
        now_s = self._clock.monotonic_s() if self._ended_s is None else self._ended_s
        return self._tally.outcome(
            stage=self._stage,
            policy=self._setup.options.policy,
            workers=self._setup.backend.workers,
            workers_reason=self._setup.workers_reason,
            wall_s=now_s - self._started_s,
        )

    def _guard(self, who: str, call: Callable[[], None]) -> None:
        _, error = caught(call)
        if error is not None:
            text = f"{who} raised {type(error).__name__}: {error}"
            _log.warning("%s: %s", self._stage, text)
            self._tally.warn(text)
