"""Batches and tables as Dagster names them."""

import dagster as dg

from ingest_assets.app.graph import GRAPH

batches = dg.DynamicPartitionsDefinition(name="batches")


def asset_key(stage: str) -> dg.AssetKey:
    """The key of the table that a stage makes."""
    return dg.AssetKey(GRAPH[stage].table.asset.split("/"))


# Runs that are queued or running.
UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
