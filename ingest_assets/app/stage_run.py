"""Run one stage for one batch: plan, run, update duplicate claims, and stage the rows for a commit."""

import logging
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ingest_assets.app.execution import NO_BUDGET, RunOptions, StageExecution, resolve_execution
from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home
from ingest_assets.app.model_switch import lock_tables, replace_empty_set
from ingest_assets.app.repair import quarantining_damage
from ingest_assets.app.telemetry import start_export
from ingest_assets.backends import open_backend
from ingest_assets.core.errors import IngestError, StageError, TableDamaged
from ingest_assets.core.items import Plan, Result, StageOutcome, WorkItem, select_for_retry
from ingest_assets.core.ports import (
    Claim,
    DuplicateStatus,
    ExecutionBackend,
    Progress,
    SimilarityRule,
    Worker,
)
from ingest_assets.intake.duplicates import Claims
from ingest_assets.runner import (
    BarProgress,
    LogProgress,
    Manifest,
    Quarantine,
    QuietHooks,
    RunSpec,
    Telemetry,
    run_stage,
)
from ingest_assets.runner.attempt import caught
from ingest_assets.runner.schedule import verdict_of
from ingest_assets.settings.execution import StageOptions
from ingest_assets.stages.base import (
    AfterBatch,
    BeforeBatch,
    Stage,
    StageWorker,
    batch_rows,
    config_hash,
    row_settings,
)
from ingest_assets.storage.parquet import Failure
from ingest_assets.storage.table import Commit, Table, copy_to_quarantine

# End the threads that a stopped stage has abandoned.


# Do not wait longer: a thread can hang in native code while a user or sensor waits.
_MAX_WAIT_S = 2.0
_POLL_S = 0.02
_log = logging.getLogger(__name__)


def close_abandoned(stage: Stage, backend: ExecutionBackend) -> None:
    """Release the stage's models and connections, and wait briefly for abandoned threads to end.

    A thread cannot be killed, but once its embedder is closed it ends and keeps the vectors that it has
    received, which may have been paid for.
    """
    if not backend.abandoned:
        return

    def close() -> None:
        """Log an error of a provider here: it must not hide why the stage was stopped."""
        _, error = caught(stage.release)
        if error is not None:
            _log.warning("%s: closing the stage raised %s: %s", stage.name, type(error).__name__, error)

    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    ends_at = time.monotonic() + _MAX_WAIT_S
    while (closing.is_alive() or backend.abandoned) and time.monotonic() < ends_at:
        time.sleep(_POLL_S)


# Forward the output of remote workers to Dagster's log.


class WorkerLines(QuietHooks):
    """Collects lines from any thread; the coordinator's thread, which owns Dagster's log, writes them."""

    def __init__(self, stage: str, log: Callable[[str], None]) -> None:
        self._stage, self._log = stage, log
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def say(self, line: str) -> None:
        """Keep a line until the coordinator writes it."""
        self._lines.put(line)

    def before_item(self, item: WorkItem) -> None:
        """Write new lines."""
        self._write()

    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None:
        """Write new lines."""
        self._write()

    def after_stage(self, outcome: StageOutcome) -> None:
        """Write the remaining lines."""
        self._write()

    def _write(self) -> None:
        while not self._lines.empty():
            self._log(f"{self._stage}: {self._lines.get()}")


class StageStopped(IngestError):
    """A stage stopped early: too many failures, too many abandoned threads, or a failed backend."""

    def __init__(self, outcome: StageOutcome) -> None:
        super().__init__(
            f"{outcome.stage} {outcome.cancelled_reason}. Finished documents are kept. Run again to continue."
        )
        self.outcome = outcome


@dataclass(frozen=True)
class Staged:
    """A stage's finished rows. The table's locks are held until `release`."""

    commit: Commit
    outcome: StageOutcome
    release: Callable[[], None]


@dataclass(frozen=True)
class StageRun:
    """One stage on one batch of a home. `progress` goes to the log, to a live bar or to standard error."""

    home: Home
    stage: str
    batch: str
    run_id: str
    log: Callable[[str], None]
    options: RunOptions = field(default_factory=RunOptions)
    progress: str = "log"

    def stage_rows(self, read: Sequence[Table]) -> Staged:
        """Plan and run the items, and stage their rows. Raise `StageStopped` for a cancelled stage."""
        home, stage, batch = self.home, self.stage, self.batch
        has_sets = GRAPH[stage].has_sets
        if has_sets:
            replace_empty_set(home, stage, self.log)
        locks = lock_tables(
            home, stage, batch, lambda path: self.log(f"{stage}: waiting for another run that holds {path}.")
        )
        with quarantining_damage(home):
            try:
                if has_sets:
                    home.family(stage).claim(home.requested_sets[stage])
                items = self._plan(read)
                execution = resolve_execution(home, stage, self.options)
                outcome = self._run_items(items, execution)
                items = home.stages[stage].after_batch(self.after_batch(items, read))
                remembers = execution.options.resume and not execution.options.force
                commit = self.commit_of(items, _failures(items, outcome, remembers=remembers))
            except BaseException:
                locks.release()
                raise
        return Staged(commit, outcome, locks.release)

    def _plan(self, read: Sequence[Table]) -> list[WorkItem]:
        items = self.home.plan(self.stage, self.batch, read)
        return select_for_retry(items, set(self.options.retry)) if self.options.retry else items

    def after_batch(self, items: list[WorkItem], read: Sequence[Table]) -> AfterBatch:
        """Return what the stage needs after its items have run."""
        claims = Claims(self.home.ledger)

        def update_claims(
            new_claims: Sequence[Claim], rule: SimilarityRule | None
        ) -> Mapping[str, DuplicateStatus]:
            claims.replace(self.batch, new_claims, rule)
            return claims.of(self.batch)

        spec = self.home.spec(self.stage)
        return AfterBatch(self.home.layout, spec, self.batch, items, update_claims, lambda: self._plan(read))

    def _run_items(self, items: list[WorkItem], execution: StageExecution) -> StageOutcome:
        home, stage, batch = self.home, self.stage, self.batch
        configured, options, asset = home.stages[stage], execution.options, home.asset(stage)
        if options.force and (copy := copy_to_quarantine(home.layout, asset, batch, self.run_id)):
            self.log(f"{stage}: forced; the old table is kept as {copy}.")
        where = f"{execution.workers} workers, {execution.kind} ({execution.reason})"
        self.log(f"{stage}: {where}, {len(items)} documents planned.")
        lines = WorkerLines(stage, self.log)
        backend = open_backend(options, execution.workers, configured.preload, lines.say)
        progress: Progress = BarProgress()
        if self.progress != "bar":
            say = to_standard_error if self.progress == "lines" else self.log
            progress = LogProgress(say, options.diagnostics_interval_s)
        try:
            if not options.dry_run:
                configured.before_batch(before_batch(items, options, backend, progress, self.log))
        except BaseException:
            backend.close(0)
            raise
        try:
            outcome = run_stage(
                RunSpec(
                    Plan(stage, items, len(items)),
                    StageWorker(configured, str(home.layout.home), batch, row_settings(configured), asset),
                    options,
                    lines,
                    backend=backend,
                    manifest=Manifest(home.layout.manifest(stage)),
                    progress=progress,
                    telemetry=Telemetry(batch_hint=batch, flush=start_export()),
                    run_id=self.run_id,
                    workers_reason=execution.reason,
                    quarantine=Quarantine(home.layout.quarantine(asset, batch)),
                )
            )
        finally:
            close_abandoned(configured, backend)
        for error in outcome.errors:
            if error.code == TableDamaged.code:
                raise TableDamaged(error.message, detail=error.detail)
        if outcome.cancelled_reason is not None:
            raise StageStopped(outcome)
        return outcome

    def summary(self, staged: Staged) -> Mapping[str, Any]:
        """Return the stage's summary of the batch's rows, staged or stored."""
        configured, commit = self.home.stages[self.stage], staged.commit
        rows = dict(batch_rows(self.home.layout, commit.spec, self.batch)) if configured.has_summary else {}
        doc_ids = [doc_id for doc_id in commit.items if doc_id in rows and doc_id not in commit.failures]
        return configured.summary(rows[doc_id] for doc_id in doc_ids)

    def commit_of(self, items: list[WorkItem], failures: dict[str, Failure]) -> Commit:
        """Return the commit of these items' rows and of the failures."""
        home, configured = self.home, self.home.stages[self.stage]
        model_set = {"set": home.requested_sets[self.stage].set} if GRAPH[self.stage].has_sets else {}
        return Commit(
            spec=self.home.spec(self.stage),
            batch=self.batch,
            stage_version=configured.version,
            config_hash=config_hash(configured),
            items={item.item_id: item.fingerprint for item in items},
            failures=failures,
            extra={**configured.footer(), **model_set},
        )


def before_batch(
    items: Sequence[WorkItem],
    options: StageOptions,
    backend: ExecutionBackend,
    progress: Progress,
    log: Callable[[str], None],
) -> BeforeBatch:
    """Return what a stage can use before its items run, on the same backend."""
    extra = options.model_copy(update={**NO_BUDGET, "retries": 0, "schedule": "fifo"})

    def run(name: str, worker: Worker, items: Sequence[WorkItem]) -> Mapping[str, Result]:
        """Run items that are not documents: without retries, budget and manifest."""
        results = _Results()
        plan = Plan(name, items, len(items))
        run_stage(
            RunSpec(plan, worker, extra, results, backend=backend, keep_backend=True, progress=progress)
        )
        return results.by_item

    to_run = [item for item in items if verdict_of(item, options) == "run"]
    return BeforeBatch(to_run, options.force, backend.workers, run, log)


class _Results(QuietHooks):
    def __init__(self) -> None:
        self.by_item: dict[str, Result] = {}

    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None:
        """Keep the results of items that succeeded."""
        if result is not None:
            self.by_item[item.item_id] = result


def to_standard_error(line: str) -> None:
    """Write a line to standard error, for commands."""
    sys.stderr.write(line + "\n")


def _failures(items: list[WorkItem], outcome: StageOutcome, *, remembers: bool) -> dict[str, Failure]:
    """Return this run's failures, and the known failures of items that were not retried."""
    errors = {error.item_id: error for error in outcome.errors}
    failures = {}
    for item in items:
        error = errors.get(item.item_id)
        if item.is_known_to_fail() and (error is None or error.retryable):
            error = item.known_failure if error is not None or remembers or item.on_hold else None
        if error is not None:
            failures[item.item_id] = Failure(item.fingerprint, error)
    return failures
