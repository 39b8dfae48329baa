"""Dagster's names for batches, their runs and their tables."""

from collections.abc import Iterable

import dagster as dg

from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home

batches = dg.DynamicPartitionsDefinition(name="batches")


def asset_key(stage: str) -> dg.AssetKey:
    """Return the asset key of a stage's table."""
    return dg.AssetKey(GRAPH[stage].table.asset.split("/"))


# The tag with the partition of a run, set by Dagster for every run.
PARTITION = "dagster/partition"
# Runs that are queued or running.
UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def require_batches(home: Home, keys: Iterable[str]) -> None:
    """Fail the step if a partition is not a batch of the home: anybody can add partitions in the web UI."""
    known = home.ledger.batches()
    for key in keys:
        if key not in known:
            message = f"{key!r} is not a batch of {home.layout.home}. `ingest status` lists the batches."
            raise dg.Failure(message, allow_retries=False)


def unfinished_runs(instance: dg.DagsterInstance, batch: str | None = None) -> list[dg.DagsterRun]:
    """Return the queued and running runs of a batch, or of all batches; at most 1000."""
    tags = {} if batch is None else {PARTITION: batch}
    runs = instance.get_runs(filters=dg.RunsFilter(tags=tags, statuses=UNFINISHED), limit=1000)
    return [run for run in runs if PARTITION in run.tags]
