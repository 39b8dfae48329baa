"""Jobs, sensors and the schedule: they request runs of the batches that the driver says are due."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

import dagster as dg

from ingest_assets.app.driver import (
    REASON,
    Due,
    ScanReport,
    due_batches,
    has_no_documents,
    record_queue_depth,
    refresh,
    run_tags,
    settle_sets,
    statistics_age_s,
    statistics_are_due,
    statistics_mark,
)
from ingest_assets.app.graph import STEPS, Node
from ingest_assets.app.home import Home
from ingest_assets.app.repair import tidy
from ingest_assets.app.telemetry import export_once
from ingest_assets.core.schemas import LEXICAL_STATS
from ingest_assets.defs.keys import UNFINISHED, asset_key, batches, unfinished_runs
from ingest_assets.defs.orphans import settle_orphans
from ingest_assets.defs.resources import HomeResource
from ingest_assets.settings.tree import AutomationSettings, ExecutorSettings

# A job for the whole graph and one per step, each with its own executor.


INGEST_ALL = "ingest_all"

_EXECUTORS = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}


def jobs(executors: ExecutorSettings, graph: Mapping[str, Node]) -> list[Any]:
    """All jobs, each run for one batch at a time."""

    def job(name: str, selection: dg.AssetSelection, executor: str, what: str) -> Any:
        return dg.define_asset_job(
            name,
            selection=selection,
            partitions_def=batches,
            executor_def=_EXECUTORS[executor],
            description=f"{what}, for one batch.",
        )

    found = [job(INGEST_ALL, dg.AssetSelection.groups("ingest"), executors.all, "Documents to embeddings")]
    for step in STEPS:
        stages = [asset_key(stage) for stage, node in graph.items() if node.step == step]
        selection = dg.AssetSelection.assets(*stages)
        found.append(job(f"{step}_only", selection, getattr(executors, step), f"Only {step}"))
    return found


def folder_sensor(settings: AutomationSettings) -> dg.SensorDefinition:
    """Looks at the watched folders and requests a run for every batch that changed."""

    @dg.sensor(
        name="watched_folders",
        job_name=INGEST_ALL,
        minimum_interval_seconds=settings.scan_interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Finds new, changed and deleted files and queued artifacts, and requests runs for them.",
    )
    def watched_folders(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SensorResult:
        here, now = home.open(), time.time()
        settle_orphans(context.instance)
        report = refresh(here, settings.scan_budget_seconds, settings.settle_seconds)
        export_once()
        record_queue_depth(here, now)
        revisions = here.ledger.batches()
        requests = [
            _request(here, due)
            for due in due_batches(here, now, seen=int(context.cursor or 0))
            if due.reason == "changed" or not unfinished_runs(context.instance, due.batch)
        ]
        known = set(context.instance.get_dynamic_partitions(batches.name or ""))
        missing = [batch for batch in revisions if batch not in known]
        return dg.SensorResult(
            run_requests=requests or None,
            skip_reason=None if requests else _silence(here, report),
            cursor=str(max(revisions.values(), default=0)),
            dynamic_partitions_requests=[batches.build_add_request(missing)] if missing else None,
        )

    return watched_folders


def reconcile_schedule(settings: AutomationSettings) -> dg.ScheduleDefinition:
    """Requests every batch whose tables are not complete, once a night by default."""

    @dg.schedule(
        name="finish_incomplete_batches",
        job_name=INGEST_ALL,
        cron_schedule=settings.reconcile_cron,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Runs every batch again that is not complete: crashes, time-outs, changed settings.",
    )
    def finish_incomplete_batches(
        context: dg.ScheduleEvaluationContext, home: HomeResource
    ) -> list[dg.RunRequest] | dg.SkipReason:
        here = home.open()
        settle_orphans(context.instance)
        context.log.info(tidy(here).as_line())
        settle_sets(here, say=context.log.info)
        now, tick = time.time(), context.scheduled_execution_time.isoformat()
        incomplete = due_batches(here, now, tick=tick)
        if not incomplete:
            waiting = here.queue.stats(now).states["queued"]
            later = f" {waiting} queued artifacts wait for their time." if waiting else ""
            return dg.SkipReason(f"All {len(here.ledger.batches())} batches are complete.{later}")
        context.instance.add_dynamic_partitions(batches.name or "", [due.batch for due in incomplete])
        return [_request(here, due) for due in incomplete]

    return finish_incomplete_batches


def _request(home: Home, due: Due) -> dg.RunRequest:
    tags = run_tags(home, due.batch, due.reason)
    return dg.RunRequest(run_key=due.key, job_name=INGEST_ALL, partition_key=due.batch, tags=tags)


def _silence(home: Home, report: ScanReport) -> str:
    if has_no_documents(home):
        file = home.layout.settings_file
        add = f"`ingest all --input FOLDER`, [sources] in {file}, or `ingest queue import LIST.jsonl`"
        return f"No folder is watched and nothing is queued. Add one: {add}."
    waiting = f" {report.waiting} files are still being written or hashed." if report.waiting else ""
    troubles = "".join(f" {source}: {p.path}: {p.reason}." for source, p in report.problems[:3])
    now = datetime.now(UTC).strftime("%H:%M:%S UTC")
    return f"No file is new or changed at {now}; {report.unchanged} files looked at.{waiting}{troubles}"


# Keeping what is made of the whole corpus up to date: a job, and the sensor that requests it.


LEXICAL_STATS_JOB = "lexical_stats_only"
# Statistics of an hour ago still rank well; of last week they may not.
_LONGEST_WAIT_S = 3600.0
# After the first run that failed, the second, and so on: a full disk is not emptied by asking twice a minute.
_PAUSES_S = (60.0, 300.0, 900.0, 3600.0)
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def lexical_stats_job() -> Any:
    """Makes the statistics, once for the whole corpus."""
    return dg.define_asset_job(
        LEXICAL_STATS_JOB,
        selection=dg.AssetSelection.assets(LEXICAL_STATS.asset),
        executor_def=dg.in_process_executor,
        description="Term statistics of the whole corpus, from all lexical tables.",
    )


def corpus_sensor(settings: AutomationSettings) -> dg.SensorDefinition:
    """Requests the statistics when lexical tables have changed and no batch is on its way.

    The cursor is of tables whose statistics have been seen: a run that is requested may yet fail.
    """

    @dg.sensor(
        name="lexical_tables",
        job_name=LEXICAL_STATS_JOB,
        minimum_interval_seconds=settings.scan_interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Sees when lexical tables have changed, and requests the statistics over all of them.",
    )
    def lexical_tables(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SensorResult:
        here = home.open()
        mark = statistics_mark(here)
        if mark is None:
            return dg.SensorResult(skip_reason="There is no lexical table yet.")
        if mark == context.cursor:
            return dg.SensorResult(skip_reason="No lexical table has changed since the statistics were made.")
        waits_for = _waits_for(context.instance, here, time.time())
        if waits_for is not None:
            return dg.SensorResult(
                skip_reason=f"Lexical tables or their statistics have changed; {waits_for}."
            )
        if not statistics_are_due(here):
            return dg.SensorResult(skip_reason="The statistics are of these tables already.", cursor=mark)
        request = dg.RunRequest(tags={REASON: "changed"})  # a key would forbid a second attempt
        return dg.SensorResult(run_requests=[request])

    return lexical_tables


def _waits_for(instance: dg.DagsterInstance, home: Home, now: float) -> str | None:
    """Why the statistics are not asked for now, if there is a reason."""
    at_it = instance.get_runs(filters=dg.RunsFilter(job_name=LEXICAL_STATS_JOB, statuses=UNFINISHED), limit=1)
    if at_it:
        return f"run {at_it[0].run_id} is to make the statistics"
    running = unfinished_runs(instance)
    if running and statistics_age_s(home, now) < _LONGEST_WAIT_S:
        return f"waiting for {len(running)} runs"
    failed, again_at = failed_runs(instance)
    if now < again_at:
        clock = datetime.fromtimestamp(again_at, UTC).strftime("%H:%M:%S UTC")
        return f"run {failed[0]} of the statistics did not succeed, the next is asked for at {clock}"
    return None


def failed_runs(instance: dg.DagsterInstance) -> tuple[list[str], float]:
    """The runs of the statistics since one succeeded, newest first, and until when to leave it at that."""
    ended = dg.RunsFilter(job_name=LEXICAL_STATS_JOB, statuses=_ENDED)
    records = instance.get_run_records(ended, limit=len(_PAUSES_S))
    failed = list(takewhile(lambda record: not record.dagster_run.is_success, records))
    if not failed:
        return [], 0.0
    ended_at = failed[0].end_time or failed[0].update_timestamp.timestamp()  # cancelled before it began
    return [record.dagster_run.run_id for record in failed], ended_at + _PAUSES_S[len(failed) - 1]
