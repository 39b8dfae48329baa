"""The sensor that watches folders and the schedule that finishes what was left."""

from datetime import UTC, datetime

import dagster as dg

from ingest_assets.config import AutomationSettings
from ingest_assets.defs.completeness import is_batch_complete
from ingest_assets.defs.home import Home
from ingest_assets.defs.jobs import INGEST_ALL
from ingest_assets.defs.orphans import settle_orphans
from ingest_assets.defs.partitions import batches
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.intake.scan import ScanReport


def run_tags(home: Home, batch: str, reason: str) -> dict[str, str]:
    """Tags the run queue can limit by."""
    sources = sorted({document.source for document in home.ledger.documents(batch=batch)})
    return {"ingest/batch": batch, "ingest/reason": reason, "ingest/source": ",".join(sources)}


def folder_sensor(settings: AutomationSettings) -> dg.SensorDefinition:
    """Looks at the watched folders and requests a run for every batch that changed."""

    @dg.sensor(
        name="watched_folders",
        job_name=INGEST_ALL,
        minimum_interval_seconds=settings.scan_interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Finds new, changed and deleted files, gives new ones a home batch and requests runs.",
    )
    def watched_folders(context: dg.SensorEvaluationContext, home: HomeResource) -> dg.SensorResult:
        here = home.open()
        settle_orphans(context.instance)
        report = here.scan(settings.scan_budget_seconds, settings.settle_seconds)
        revisions = here.ledger.batches()
        seen = int(context.cursor or 0)
        changed = {key: revision for key, revision in revisions.items() if revision > seen}
        requests = [
            _request(here, key, revision, "changed")
            for key, revision in changed.items()
            if not is_batch_complete(here, key, revision)
        ]
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
        revisions = here.ledger.batches()
        incomplete = [
            key for key, revision in revisions.items() if not is_batch_complete(here, key, revision)
        ]
        if not incomplete:
            return dg.SkipReason(f"All {len(revisions)} batches are complete.")
        context.instance.add_dynamic_partitions(batches.name or "", incomplete)
        tick = context.scheduled_execution_time.isoformat()
        return [_request(here, key, revisions[key], "reconcile", tick) for key in incomplete]

    return finish_incomplete_batches


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
    if not home.ledger.sources():
        file = home.layout.settings_file
        return f"No folder is watched. Add one: `ingest all --input FOLDER`, or [sources] in {file}."
    waiting = f" {report.waiting} files are still being written or hashed." if report.waiting else ""
    troubles = "".join(f" {source}: {p.path}: {p.reason}." for source, p in report.problems[:3])
    now = datetime.now(UTC).strftime("%H:%M:%S UTC")
    return f"No file is new or changed at {now}; {report.unchanged} files looked at.{waiting}{troubles}"
