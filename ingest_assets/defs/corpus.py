"""Keeping what is made of the whole corpus up to date: a job, and the sensor that requests it."""

import time
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


def lexical_stats_job() -> Any:
    """Makes the statistics, once for the whole corpus."""
    return dg.define_asset_job(
        LEXICAL_STATS_JOB,
        selection=dg.AssetSelection.assets(LEXICAL_STATS.asset),
        executor_def=dg.in_process_executor,
        description="Term statistics of the whole corpus, from all lexical tables.",
    )


def corpus_sensor(settings: AutomationSettings) -> dg.SensorDefinition:
    """Requests the statistics when lexical tables have changed and no batch is on its way."""

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
        running = _batches_running(context.instance)
        if running and _age_seconds(here, time.time()) < _LONGEST_WAIT_S:
            return dg.SensorResult(skip_reason=f"Lexical tables have changed; waiting for {running} runs.")
        if are_current(here.layout, here.tables("lexical")):
            return dg.SensorResult(skip_reason="The statistics are of these tables already.", cursor=mark)
        request = dg.RunRequest(run_key=mark, tags={"ingest/reason": "changed"})
        return dg.SensorResult(run_requests=[request], cursor=mark)

    return lexical_tables


def _files_mark(home: Home) -> str | None:
    """Names, sizes and times: a look must not read the corpus."""
    files = sorted(home.layout.asset_folder(_LEXICAL).glob("*.parquet"))
    found = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return sha256_text(canonical_json(found)) if found else None


def _batches_running(instance: dg.DagsterInstance) -> int:
    unfinished = instance.get_runs(filters=dg.RunsFilter(statuses=UNFINISHED), limit=1000)
    return sum("dagster/partition" in run.tags for run in unfinished)


def _age_seconds(home: Home, now: float) -> float:
    """How long the statistics, or the first table without any, have been there."""
    path = stats_path(home.layout)
    tables = home.layout.asset_folder(_LEXICAL).glob("*.parquet")
    since = path.stat().st_mtime if path.is_file() else min(table.stat().st_mtime for table in tables)
    return now - since
