"""The stage runner as a Dagster resource: settings and run config in, staged rows out."""

import sys
from collections.abc import Sequence
from functools import partial

import dagster as dg

from ingest_assets.backends import open_backend
from ingest_assets.defs.execution import StageExecution, execution_of
from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.healing import found_damaged
from ingest_assets.defs.home import Home
from ingest_assets.defs.letting_go import let_go
from ingest_assets.defs.locking import held_locks
from ingest_assets.defs.reading_ahead import read_ahead
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.sets import take_empty_place
from ingest_assets.defs.settling import settled
from ingest_assets.defs.staged import Staged, stage_stopped
from ingest_assets.defs.telemetry import stage_telemetry
from ingest_assets.defs.worker_lines import WorkerLines
from ingest_assets.model.errors import TableDamaged
from ingest_assets.model.items import Plan, WorkItem, retrying
from ingest_assets.model.options import StageOptions
from ingest_assets.model.outcomes import StageOutcome
from ingest_assets.model.ports import Progress
from ingest_assets.runner import BarProgress, LogProgress, Manifest, Quarantine, run_stage
from ingest_assets.stages.stage import config_hash, deciding
from ingest_assets.stages.worker import StageWorker
from ingest_assets.storage.footer import Failure
from ingest_assets.storage.tables import Commit, Table, set_aside


class StageRunner(dg.ConfigurableResource):
    """Runs one stage for one batch. Progress goes to Dagster's log, to a live bar or to standard error."""

    home: HomeResource
    progress: str = "log"

    def run(
        self, stage: str, read: Sequence[Table], config: StageRunConfig, context: dg.AssetExecutionContext
    ) -> Staged:
        """Plan, run and stage; what could not be done is data, a cancelled stage is a failed step."""
        home = self.home.open()
        if GRAPH[stage].has_sets:
            take_empty_place(home, stage, context.log.info)
        locks = held_locks(
            home,
            stage,
            context.partition_key,
            lambda path: context.log.info(f"{stage}: waiting for another run that holds {path}."),
        )
        try:
            if GRAPH[stage].has_sets:
                home.family(stage).claim(home.set_mark(stage))
            plan = partial(_plan, home, stage, context.partition_key, read, config)
            items = plan()
            execution = execution_of(home, stage, config)
            options = execution.options
            outcome = self._run_items(home, stage, items, execution, context)
            items = settled(home, stage, context.partition_key, items, plan)
            failures = _failures(items, outcome, remembers=options.resume and not options.force)
            commit = _commit(home, stage, context.partition_key, items, failures)
        except TableDamaged as damaged:
            locks.release()
            raise found_damaged(home, damaged) from damaged
        except BaseException:
            locks.release()
            raise
        return Staged(commit, outcome, locks.release)

    def _run_items(
        self,
        home: Home,
        stage: str,
        items: list[WorkItem],
        execution: StageExecution,
        context: dg.AssetExecutionContext,
    ) -> StageOutcome:
        recipe, batch, options = home.stages[stage], context.partition_key, execution.options
        if options.force and (kept := set_aside(home.layout, recipe.spec.asset, batch, context.run.run_id)):
            context.log.info(f"{stage}: forced; the table as it was is kept as {kept}.")
        context.log.info(f"{stage}: {execution.as_line()}, {len(items)} documents planned.")
        lines = WorkerLines(stage, context.log.info)
        backend = open_backend(options, execution.workers, recipe.preload, lines.say)
        progress = self._progress(options, context)
        try:
            read_ahead(recipe, items, options, backend, progress, context.log.info)
        except BaseException:
            backend.close(0)
            raise
        try:
            outcome = run_stage(
                Plan(stage, items, len(items)),
                StageWorker(recipe, str(home.layout.home), batch, deciding(recipe)),
                options,
                lines,
                backend=backend,
                manifest=Manifest(home.layout.manifest(stage)),
                progress=progress,
                telemetry=stage_telemetry(batch),
                run_id=context.run.run_id,
                workers_reason=execution.reason,
                quarantine=Quarantine(home.layout.quarantine(recipe.spec.asset, batch)),
            )
        finally:
            let_go(recipe, backend)
        for error in outcome.errors:
            if error.code == TableDamaged.code:
                raise TableDamaged(error.message, detail=error.detail)
        if outcome.cancelled_reason is not None:
            raise stage_stopped(outcome)
        return outcome

    def _progress(self, options: StageOptions, context: dg.AssetExecutionContext) -> Progress:
        if self.progress == "bar":
            return BarProgress()
        say = to_standard_error if self.progress == "lines" else context.log.info
        return LogProgress(say, options.diagnostics_interval_s)


def _plan(
    home: Home, stage: str, batch: str, read: Sequence[Table], config: StageRunConfig
) -> list[WorkItem]:
    items = home.plan(stage, batch, read)
    return retrying(items, set(config.retry)) if config.retry else items


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


def _commit(
    home: Home, stage: str, batch: str, items: list[WorkItem], failures: dict[str, Failure]
) -> Commit:
    recipe = home.stages[stage]
    return Commit(
        spec=recipe.spec,
        batch=batch,
        stage_version=recipe.version,
        config_hash=config_hash(recipe),
        items={item.item_id: item.fingerprint for item in items},
        failures=failures,
        extra=dict(recipe.footer()),
    )
