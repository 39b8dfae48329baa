"""Run one stage for one batch: plan, run, settle, and stage the rows for a commit."""

import logging
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ingest_assets.app.execution import NO_BUDGET, RunOptions, StageExecution, execution_of
from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home
from ingest_assets.app.model_switch import held_locks, take_empty_place
from ingest_assets.app.repair import putting_damage_aside
from ingest_assets.app.telemetry import export_once
from ingest_assets.backends import open_backend
from ingest_assets.core.errors import IngestError, StageError, TableDamaged
from ingest_assets.core.items import Plan, Result, StageOutcome, WorkItem, retrying
from ingest_assets.core.ports import Alike, Claim, ExecutionBackend, Progress, Standing, Worker
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
    deciding,
)
from ingest_assets.storage.parquet import Failure
from ingest_assets.storage.table import Commit, Table, set_aside

# When a stage is stopped: items that were given up keep what they have got, and end.


# A thread may hang in native code for ever, and the person or sensor behind the stage waits for its end.
LONGEST_S = 2.0
_LOOK_AGAIN_S = 0.02
_log = logging.getLogger(__name__)


def release_stage(recipe: Stage, backend: ExecutionBackend) -> None:
    """Have the stage close what threads that were given up wait for, and wait a little for their end.

    A thread cannot be killed; but one whose embedder is closed keeps the vectors that it was given by then,
    which may have been paid for.
    """
    if not backend.abandoned:
        return

    def close() -> None:
        """What a package's provider raises here must not hide why the stage was stopped."""
        _, error = caught(recipe.release)
        if error is not None:
            _log.warning("%s: closing what was open raised %s: %s", recipe.name, type(error).__name__, error)

    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    ends_at = time.monotonic() + LONGEST_S
    while (closing.is_alive() or backend.abandoned) and time.monotonic() < ends_at:
        time.sleep(_LOOK_AGAIN_S)


# What far workers say, brought into the log of the step they work for.


class WorkerLines(QuietHooks):
    """Any thread may `say`; the coordinator's thread, to which Dagster's log belongs, writes."""

    def __init__(self, stage: str, log: Callable[[str], None]) -> None:
        self._stage, self._log = stage, log
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def say(self, line: str) -> None:
        """Keep a line until the coordinator has time."""
        self._lines.put(line)

    def before_item(self, item: WorkItem) -> None:
        """Write what has come."""
        self._write()

    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None:
        """Write what has come."""
        self._write()

    def after_stage(self, outcome: StageOutcome) -> None:
        """Write what is left."""
        self._write()

    def _write(self) -> None:
        while not self._lines.empty():
            self._log(f"{self._stage}: {self._lines.get()}")


class StageStopped(IngestError):
    """A stage was cancelled: by its error budget, or by a person."""

    def __init__(self, outcome: StageOutcome) -> None:
        super().__init__(
            f"{outcome.stage} {outcome.cancelled_reason}. What is finished is kept; the next run continues."
        )
        self.outcome = outcome


@dataclass(frozen=True)
class Staged:
    """A stage's finished work. The table's lock is held until it is committed."""

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
        """Plan, run and stage. What failed is data; a cancelled stage raises `StageStopped`."""
        home, stage, batch = self.home, self.stage, self.batch
        has_sets = GRAPH[stage].has_sets
        if has_sets:
            take_empty_place(home, stage, self.log)
        locks = held_locks(
            home, stage, batch, lambda path: self.log(f"{stage}: waiting for another run that holds {path}.")
        )
        with putting_damage_aside(home):
            try:
                if has_sets:
                    home.family(stage).claim(home.set_marks[stage])
                items = self._plan(read)
                execution = execution_of(home, stage, self.options)
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
        return retrying(items, set(self.options.retry)) if self.options.retry else items

    def after_batch(self, items: list[WorkItem], read: Sequence[Table]) -> AfterBatch:
        """What the stage may use after its items have run."""
        claims = Claims(self.home.ledger)

        def settle_claims(given: Sequence[Claim], alike: Alike | None) -> Mapping[str, Standing]:
            claims.settle(self.batch, given, alike)
            return claims.of(self.batch)

        spec = self.home.spec(self.stage)
        return AfterBatch(self.home.layout, spec, self.batch, items, settle_claims, lambda: self._plan(read))

    def _run_items(self, items: list[WorkItem], execution: StageExecution) -> StageOutcome:
        home, stage, batch = self.home, self.stage, self.batch
        recipe, options, asset = home.stages[stage], execution.options, home.asset(stage)
        if options.force and (kept := set_aside(home.layout, asset, batch, self.run_id)):
            self.log(f"{stage}: forced; the table as it was is kept as {kept}.")
        where = f"{execution.workers} workers, {execution.kind} ({execution.reason})"
        self.log(f"{stage}: {where}, {len(items)} documents planned.")
        lines = WorkerLines(stage, self.log)
        backend = open_backend(options, execution.workers, recipe.preload, lines.say)
        progress: Progress = BarProgress()
        if self.progress != "bar":
            say = to_standard_error if self.progress == "lines" else self.log
            progress = LogProgress(say, options.diagnostics_interval_s)
        try:
            if not options.dry_run:
                recipe.before_batch(before_batch(items, options, backend, progress, self.log))
        except BaseException:
            backend.close(0)
            raise
        try:
            outcome = run_stage(
                RunSpec(
                    Plan(stage, items, len(items)),
                    StageWorker(recipe, str(home.layout.home), batch, deciding(recipe), asset),
                    options,
                    lines,
                    backend=backend,
                    manifest=Manifest(home.layout.manifest(stage)),
                    progress=progress,
                    telemetry=Telemetry(batch_hint=batch, flush=export_once()),
                    run_id=self.run_id,
                    workers_reason=execution.reason,
                    quarantine=Quarantine(home.layout.quarantine(asset, batch)),
                )
            )
        finally:
            release_stage(recipe, backend)
        for error in outcome.errors:
            if error.code == TableDamaged.code:
                raise TableDamaged(error.message, detail=error.detail)
        if outcome.cancelled_reason is not None:
            raise StageStopped(outcome)
        return outcome

    def summary(self, staged: Staged) -> Mapping[str, Any]:
        """What the stage says of the batch's rows, staged or stored."""
        recipe, commit = self.home.stages[self.stage], staged.commit
        rows = dict(batch_rows(self.home.layout, commit.spec, self.batch)) if recipe.has_summary else {}
        wanted = [doc_id for doc_id in commit.items if doc_id in rows and doc_id not in commit.failures]
        return recipe.summary(rows[doc_id] for doc_id in wanted)

    def commit_of(self, items: list[WorkItem], failures: dict[str, Failure]) -> Commit:
        """What the table will hold: the rows of these items, and the failures."""
        home, recipe = self.home, self.home.stages[self.stage]
        of_set = {"set": home.set_marks[self.stage].set} if GRAPH[self.stage].has_sets else {}
        return Commit(
            spec=self.home.spec(self.stage),
            batch=self.batch,
            stage_version=recipe.version,
            config_hash=config_hash(recipe),
            items={item.item_id: item.fingerprint for item in items},
            failures=failures,
            extra={**recipe.footer(), **of_set},
        )


def before_batch(
    items: Sequence[WorkItem],
    options: StageOptions,
    backend: ExecutionBackend,
    progress: Progress,
    log: Callable[[str], None],
) -> BeforeBatch:
    """What a stage may use before its items run, on the backend that they will run on."""
    extra = options.model_copy(update={**NO_BUDGET, "retries": 0, "schedule": "fifo"})

    def run(name: str, worker: Worker, items: Sequence[WorkItem]) -> Mapping[str, Result]:
        """No retries, no budget, no manifest: those are for documents."""
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
        """Keep what succeeded."""
        if result is not None:
            self.by_item[item.item_id] = result


def to_standard_error(line: str) -> None:
    """For commands, where a person or a log waits."""
    sys.stderr.write(line + "\n")


def _failures(items: list[WorkItem], outcome: StageOutcome, *, remembers: bool) -> dict[str, Failure]:
    """What failed in this run, and what was not tried because it failed before and would fail again."""
    errors = {error.item_id: error for error in outcome.errors}
    failures = {}
    for item in items:
        error = errors.get(item.item_id)
        if item.is_known_to_fail() and (error is None or error.retryable):
            error = item.known_failure if error is not None or remembers or item.on_hold else None
        if error is not None:
            failures[item.item_id] = Failure(item.fingerprint, error)
    return failures
