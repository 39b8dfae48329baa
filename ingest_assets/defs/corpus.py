"""Keeping what is made of the whole corpus up to date: a job, and the sensor that requests it."""

import time
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

import dagster as dg

from ingest_assets.config import AutomationSettings
from ingest_assets.defs.automation import UNFINISHED
from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.model.identity import canonical_json, sha256_text
from ingest_assets.model.schemas import LEXICAL_STATS
from ingest_assets.stages.lexical_stats import are_current, stats_path

_LEXICAL = GRAPH["lexical"].table.asset
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
        mark = _files_mark(here)
        if mark is None:
            return dg.SensorResult(skip_reason="There is no lexical table yet.")
        if mark == context.cursor:
            return dg.SensorResult(skip_reason="No lexical table has changed since the statistics were made.")
        waits_for = _waits_for(context.instance, here, time.time())
        if waits_for is not None:
            return dg.SensorResult(
                skip_reason=f"Lexical tables or their statistics have changed; {waits_for}."
            )
        if are_current(here.layout, here.tables("lexical")):
            return dg.SensorResult(skip_reason="The statistics are of these tables already.", cursor=mark)
        request = dg.RunRequest(tags={"ingest/reason": "changed"})  # a key would forbid a second attempt
        return dg.SensorResult(run_requests=[request])

    return lexical_tables


def _files_mark(home: Home) -> str | None:
    """Names, sizes and times, of the statistics too: a look must not read the corpus."""
    tables = sorted(home.layout.asset_folder(_LEXICAL).glob("*.parquet"))
    stats = [path for path in [stats_path(home.layout)] if path.is_file()]
    found = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in [*tables, *stats]]
    return sha256_text(canonical_json(found)) if tables else None


def _waits_for(instance: dg.DagsterInstance, home: Home, now: float) -> str | None:
    """Why the statistics are not asked for now, if there is a reason."""
    at_it = instance.get_runs(filters=dg.RunsFilter(job_name=LEXICAL_STATS_JOB, statuses=UNFINISHED), limit=1)
    if at_it:
        return f"run {at_it[0].run_id} is to make the statistics"
    running = _batches_running(instance)
    if running and _age_seconds(home, now) < _LONGEST_WAIT_S:
        return f"waiting for {running} runs"
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


def _batches_running(instance: dg.DagsterInstance) -> int:
    unfinished = instance.get_runs(filters=dg.RunsFilter(statuses=UNFINISHED), limit=1000)
    return sum("dagster/partition" in run.tags for run in unfinished)


def _age_seconds(home: Home, now: float) -> float:
    """How long the statistics, or the first table without any, have been there."""
    path = stats_path(home.layout)
    tables = home.layout.asset_folder(_LEXICAL).glob("*.parquet")
    since = path.stat().st_mtime if path.is_file() else min(table.stat().st_mtime for table in tables)
    return now - since
