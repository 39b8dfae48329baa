"""The sensor that watches folders and the schedule that finishes what was left."""

import time
from datetime import UTC, datetime

import dagster as dg

from ingest_assets.config import AutomationSettings
from ingest_assets.defs.completeness import has_work
from ingest_assets.defs.home import Home
from ingest_assets.defs.housekeeping import tidy
from ingest_assets.defs.jobs import INGEST_ALL
from ingest_assets.defs.orphans import settle_leases, settle_orphans
from ingest_assets.defs.partitions import batches
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.defs.sets import cut_over, families
from ingest_assets.defs.telemetry import export_once
from ingest_assets.intake.catalogue import SOURCE
from ingest_assets.intake.inbox import Filter
from ingest_assets.intake.measures import Measures
from ingest_assets.intake.scan import ScanReport

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def run_tags(home: Home, batch: str, reason: str) -> dict[str, str]:
    """Tags the run queue can limit by."""
    sources = {document.source for document in home.ledger.documents(batch=batch)}
    sources |= {SOURCE} if home.queue.find(Filter(batch=batch), limit=1) else set()
    return {"ingest/batch": batch, "ingest/reason": reason, "ingest/source": ",".join(sorted(sources))}


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
        here = home.open()
        settle_orphans(context.instance)
        settle_leases(here)
        report = here.scan(settings.scan_budget_seconds, settings.settle_seconds)
        here.refresh_old()
        now = time.time()
        export_once()
        Measures(here.ledger.database).depth(here.queue.stats(now))
        revisions = here.ledger.batches()
        seen = int(context.cursor or 0)
        changed = {key: revision for key, revision in revisions.items() if revision > seen}
        requests = [
            _request(here, key, revision, "changed")
            for key, revision in changed.items()
            if has_work(here, key, revision, now)
        ]
        requests += _due_again(context.instance, here, {k: r for k, r in revisions.items() if r <= seen}, now)
        return dg.SensorResult(
            run_requests=requests or None,
            skip_reason=None if requests else _silence(here, report),
            cursor=str(max(revisions.values(), default=0)),
            dynamic_partitions_requests=_missing_partitions(context.instance, list(revisions)),
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
        for stage in families(here):
            cut_over(here, stage, context.log.info)
        now, revisions = time.time(), here.ledger.batches()
        incomplete = [key for key, revision in revisions.items() if has_work(here, key, revision, now)]
        if not incomplete:
            waiting = here.queue.stats(now).states["queued"]
            later = f" {waiting} queued artifacts wait for their time." if waiting else ""
            return dg.SkipReason(f"All {len(revisions)} batches are complete.{later}")
        context.instance.add_dynamic_partitions(batches.name or "", incomplete)
        tick = context.scheduled_execution_time.isoformat()
        return [_request(here, key, revisions[key], "reconcile", tick) for key in incomplete]

    return finish_incomplete_batches


def _due_again(
    instance: dg.DagsterInstance, home: Home, unchanged: dict[str, int], now: float
) -> list[dg.RunRequest]:
    """Batches whose artifacts have waited long enough to be tried again, unless a run is at them already.

    Whoever puts an artifact back gives it a new time, so the key is new for every time they become due.
    """
    due = home.queue.due_batches(now)
    return [
        _request(home, key, unchanged[key], "due again", f"{first:.3f}")
        for key, (_, first) in sorted(due.items())
        if key in unchanged and not _is_running(instance, key)
    ]


def _is_running(instance: dg.DagsterInstance, batch: str) -> bool:
    unfinished = dg.RunsFilter(tags={"ingest/batch": batch}, statuses=UNFINISHED)
    return bool(instance.get_runs(filters=unfinished, limit=1))


def _request(home: Home, batch: str, revision: int, reason: str, tick: str = "") -> dg.RunRequest:
    """The revision grows with every change, so a batch that changes back is still a new request."""
    key = f"{batch}@{revision}" + (f"@{tick}" if tick else "")
    return dg.RunRequest(
        run_key=key, job_name=INGEST_ALL, partition_key=batch, tags=run_tags(home, batch, reason)
    )


def _missing_partitions(
    instance: dg.DagsterInstance, keys: list[str]
) -> list[dg.AddDynamicPartitionsRequest] | None:
    known = set(instance.get_dynamic_partitions(batches.name or ""))
    missing = [key for key in keys if key not in known]
    return [batches.build_add_request(missing)] if missing else None


def _silence(home: Home, report: ScanReport) -> str:
    if not home.ledger.sources() and not home.queue.find(Filter(), limit=1):
        file = home.layout.settings_file
        add = f"`ingest all --input FOLDER`, [sources] in {file}, or `ingest queue import LIST.jsonl`"
        return f"No folder is watched and nothing is queued. Add one: {add}."
    waiting = f" {report.waiting} files are still being written or hashed." if report.waiting else ""
    troubles = "".join(f" {source}: {p.path}: {p.reason}." for source, p in report.problems[:3])
    now = datetime.now(UTC).strftime("%H:%M:%S UTC")
    return f"No file is new or changed at {now}; {report.unchanged} files looked at.{waiting}{troubles}"
