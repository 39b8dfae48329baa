"""Combine assets, checks, jobs, sensors and resources into Dagster definitions."""

import dagster as dg

from ingest_assets.defs.assets import lexical_stats, lexical_stats_cover_every_batch, stage_asset
from ingest_assets.defs.automation import (
    corpus_sensor,
    folder_sensor,
    jobs,
    lexical_stats_job,
    reconcile_schedule,
)
from ingest_assets.defs.checks import table_checks
from ingest_assets.defs.io_manager import parquet_tables
from ingest_assets.defs.resources import HomeResource, StageRunner


def build_definitions(
    home: HomeResource | None = None, *, progress: str = "log", updates_statistics: bool = True
) -> dg.Definitions:
    """Return the definitions for a home, by default that of the environment.

    With `updates_statistics`, the last active run updates the corpus statistics; commands do that themselves.
    """
    home = home or HomeResource()
    opened = home.open()
    settings, graph = opened.settings, opened.graph
    return dg.Definitions(
        assets=[*(stage_asset(stage, node) for stage, node in graph.items()), lexical_stats],
        asset_checks=[*table_checks(graph), lexical_stats_cover_every_batch],
        jobs=[*jobs(settings.executors, graph), lexical_stats_job()],
        sensors=[folder_sensor(settings.automation), corpus_sensor(settings.automation)],
        schedules=[reconcile_schedule(settings.automation)],
        executor=dg.in_process_executor,
        resources={
            "home": home,
            "io_manager": parquet_tables(updates_statistics=updates_statistics),
            "runner": StageRunner(progress=progress),
        },
    )
