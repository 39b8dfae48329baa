"""Batches, their runs and their tables as Dagster names them."""

import dagster as dg

from ingest_assets.app.graph import GRAPH

batches = dg.DynamicPartitionsDefinition(name="batches")


def asset_key(stage: str) -> dg.AssetKey:
    """The key of the table that a stage makes."""
    return dg.AssetKey(GRAPH[stage].table.asset.split("/"))


# The tag by which Dagster tells the partition of a run, whoever started it.
PARTITION = "dagster/partition"
# Runs that are queued or running.
UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def unfinished_runs(instance: dg.DagsterInstance, batch: str | None = None) -> list[dg.DagsterRun]:
    """Runs of a batch, or of any, that are queued or running; a thousand at most."""
    tags = {} if batch is None else {PARTITION: batch}
    runs = instance.get_runs(filters=dg.RunsFilter(tags=tags, statuses=UNFINISHED), limit=1000)
    return [run for run in runs if PARTITION in run.tags]
