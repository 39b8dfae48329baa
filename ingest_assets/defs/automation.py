"""Jobs, sensors and the schedule: they request runs of the batches that are due."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

import dagster as dg

from ingest_assets.app.driver import (
    REASON_TAG,
    Due,
    ScanReport,
    due_batches,
    has_no_documents,
    record_queue_depth,
    refresh,
    run_tags,
    statistics_age_s,
    statistics_are_due,
    statistics_fingerprint,
    switch_complete_sets,
)
from ingest_assets.app.graph import STEPS, Node
from ingest_assets.app.home import Home
from ingest_assets.app.repair import clean_up
from ingest_assets.app.telemetry import start_export
from ingest_assets.core.schemas import LEXICAL_STATS
from ingest_assets.defs.keys import UNFINISHED, asset_key, batches, unfinished_runs
from ingest_assets.defs.orphans import fail_orphaned_runs
from ingest_assets.defs.resources import HomeResource
from ingest_assets.settings.tree import AutomationSettings, ExecutorSettings

# A job for the whole graph and one per step, each with its own executor.


INGEST_ALL = "ingest_all"

_EXECUTORS = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}


def jobs(executors: ExecutorSettings, graph: Mapping[str, Node]) -> list[Any]:
    """Return all jobs; each run of a job processes one batch."""

    def job(name: str, selection: dg.AssetSelection, executor: str, scope: str) -> Any:
        return dg.define_asset_job(
            name,
            selection=selection,
            partitions_def=batches,
            executor_def=_EXECUTORS[executor],
            description=f"{scope}, for one batch.",
        )

    result = [job(INGEST_ALL, dg.AssetSelection.groups("ingest"), executors.all, "All stages")]
    for step in STEPS:
        stages = [asset_key(stage) for stage, node in graph.items() if node.step == step]
        selection = dg.AssetSelection.assets(*stages)
        result.append(job(f"{step}_only", selection, getattr(executors, step), f"Only {step}"))
    return result


def folder_sensor(settings: AutomationSettings) -> dg.SensorDefinition:
    """Return the sensor that scans the watched folders and requests a run for every changed batch."""

    @dg.sensor(
        name="watched_folders",
        job_name=INGEST_ALL,
        minimum_interval_seconds=settings.scan_interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Finds new, changed and deleted files and queued documents, and requests runs for them.",
    )
    def watched_folders(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SensorResult:
        opened, now = home.open(), time.time()
        fail_orphaned_runs(context.instance)
        report = refresh(opened, settings.scan_budget_seconds, settings.settle_seconds)
        start_export()
        record_queue_depth(opened, now)
        revisions = opened.ledger.batches()
        requests = [
            _request(opened, due)
            for due in due_batches(opened, now, seen=int(context.cursor or 0))
            if due.reason == "changed" or not unfinished_runs(context.instance, due.batch)
        ]
        known = set(context.instance.get_dynamic_partitions(batches.name or ""))
        missing = [batch for batch in revisions if batch not in known]
        return dg.SensorResult(
            run_requests=requests or None,
            skip_reason=None if requests else _skip_reason(opened, report),
            cursor=str(max(revisions.values(), default=0)),
            dynamic_partitions_requests=[batches.build_add_request(missing)] if missing else None,
        )

    return watched_folders


def reconcile_schedule(settings: AutomationSettings) -> dg.ScheduleDefinition:
    """Return the schedule that requests every incomplete batch, once a night by default."""

    @dg.schedule(
        name="finish_incomplete_batches",
        job_name=INGEST_ALL,
        cron_schedule=settings.reconcile_cron,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Runs every incomplete batch again, after crashes, timeouts or changed settings.",
    )
    def finish_incomplete_batches(
        context: dg.ScheduleEvaluationContext, home: HomeResource
    ) -> list[dg.RunRequest] | dg.SkipReason:
        opened = home.open()
        fail_orphaned_runs(context.instance)
        context.log.info(clean_up(opened).as_line())
        switch_complete_sets(opened, say=context.log.info)
        now, tick = time.time(), context.scheduled_execution_time.isoformat()
        incomplete = due_batches(opened, now, tick=tick)
        if not incomplete:
            waiting = opened.queue.stats(now).states["queued"]
            later = f" {waiting} queued documents are not due yet." if waiting else ""
            return dg.SkipReason(f"All {len(opened.ledger.batches())} batches are complete.{later}")
        context.instance.add_dynamic_partitions(batches.name or "", [due.batch for due in incomplete])
        return [_request(opened, due) for due in incomplete]

    return finish_incomplete_batches


def _request(home: Home, due: Due) -> dg.RunRequest:
    tags = run_tags(home, due.batch, due.reason)
    return dg.RunRequest(run_key=due.key, job_name=INGEST_ALL, partition_key=due.batch, tags=tags)


def _skip_reason(home: Home, report: ScanReport) -> str:
    if has_no_documents(home):
        file = home.layout.settings_file
        add = f"`ingest all --input FOLDER`, [sources] in {file}, or `ingest queue import LIST.jsonl`"
        return f"No folder is watched and the queue is empty. Add documents with {add}."
    waiting = f" {report.waiting} files are still being written or hashed." if report.waiting else ""
    problems = "".join(f" {source}: {p.path}: {p.reason}." for source, p in report.problems[:3])
    now = datetime.now(UTC).strftime("%H:%M:%S UTC")
    return f"No file is new or changed at {now}; {report.unchanged} files checked.{waiting}{problems}"


# The statistics of the whole corpus: a job, and the sensor that requests it.


LEXICAL_STATS_JOB = "lexical_stats_only"
# Statistics that are an hour old still rank well; older ones may not.
_MAX_AGE_S = 3600.0
# After the first failed run, the second, and so on: retrying twice a minute does not empty a full disk.
_BACKOFF_S = (60.0, 300.0, 900.0, 3600.0)
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def lexical_stats_job() -> Any:
    """Return the job that computes the statistics of the whole corpus."""
    return dg.define_asset_job(
        LEXICAL_STATS_JOB,
        selection=dg.AssetSelection.assets(LEXICAL_STATS.asset),
        executor_def=dg.in_process_executor,
        description="Term statistics of the whole corpus, from all lexical tables.",
    )


def corpus_sensor(settings: AutomationSettings) -> dg.SensorDefinition:
    """Return the sensor that requests the statistics after lexical tables have changed.

    It waits for running batches. The cursor moves only once the statistics are current: a run can fail.
    """

    @dg.sensor(
        name="lexical_tables",
        job_name=LEXICAL_STATS_JOB,
        minimum_interval_seconds=settings.scan_interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Requests the corpus statistics after lexical tables have changed.",
    )
    def lexical_tables(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SensorResult:
        opened = home.open()
        fingerprint = statistics_fingerprint(opened)
        if fingerprint is None:
            return dg.SensorResult(skip_reason="There is no lexical table yet.")
        if fingerprint == context.cursor:
            return dg.SensorResult(skip_reason="No lexical table has changed since the last statistics.")
        obstacle = _obstacle(context.instance, opened, time.time())
        if obstacle is not None:
            return dg.SensorResult(
                skip_reason=f"Lexical tables or their statistics have changed; {obstacle}."
            )
        if not statistics_are_due(opened):
            return dg.SensorResult(skip_reason="The statistics are up to date.", cursor=fingerprint)
        request = dg.RunRequest(tags={REASON_TAG: "changed"})  # a run key would prevent a second attempt
        return dg.SensorResult(run_requests=[request])

    return lexical_tables


def _obstacle(instance: dg.DagsterInstance, home: Home, now: float) -> str | None:
    """Return why the statistics are not requested now; None if nothing is in the way."""
    unfinished = dg.RunsFilter(job_name=LEXICAL_STATS_JOB, statuses=UNFINISHED)
    if active := instance.get_runs(filters=unfinished, limit=1):
        return f"run {active[0].run_id} of the statistics is queued or running"
    running = unfinished_runs(instance)
    if running and statistics_age_s(home, now) < _MAX_AGE_S:
        return f"waiting for {len(running)} runs"
    failed, retry_at = failed_runs(instance)
    if now < retry_at:
        clock = datetime.fromtimestamp(retry_at, UTC).strftime("%H:%M:%S UTC")
        return f"run {failed[0]} of the statistics did not succeed; retrying at {clock}"
    return None


def failed_runs(instance: dg.DagsterInstance) -> tuple[list[str], float]:
    """Return the failed runs of the statistics since the last success, newest first, and when to retry."""
    ended = dg.RunsFilter(job_name=LEXICAL_STATS_JOB, statuses=_ENDED)
    records = instance.get_run_records(ended, limit=len(_BACKOFF_S))
    failed = list(takewhile(lambda record: not record.dagster_run.is_success, records))
    if not failed:
        return [], 0.0
    ended_at = failed[0].end_time or failed[0].update_timestamp.timestamp()  # cancelled before it began
    return [record.dagster_run.run_id for record in failed], ended_at + _BACKOFF_S[len(failed) - 1]
