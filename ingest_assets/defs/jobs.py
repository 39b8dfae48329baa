"""A job for the whole graph and one per step, each with its own executor."""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from ingest_assets.config import ExecutorSettings
from ingest_assets.defs.graph import STEPS, Node, Step
from ingest_assets.defs.partitions import batches

INGEST_ALL = "ingest_all"

_EXECUTORS = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}


def jobs(executors: ExecutorSettings, graph: Mapping[str, Node]) -> list[Any]:
    """All jobs, each run for one batch at a time."""
    whole = dg.AssetSelection.groups("ingest")
    everything = _job(INGEST_ALL, whole, executors.all, "Documents to embeddings")
    steps = [
        _job(f"{step}_only", _assets(step, graph), getattr(executors, step), f"Only {step}") for step in STEPS
    ]
    return [everything, *steps]


def _assets(step: Step, graph: Mapping[str, Node]) -> dg.AssetSelection:
    return dg.AssetSelection.assets(*(node.asset_key for node in graph.values() if node.step == step))


def _job(name: str, selection: dg.AssetSelection, executor: str, what: str) -> Any:
    return dg.define_asset_job(
        name,
        selection=selection,
        partitions_def=batches,
        executor_def=_EXECUTORS[executor],
        description=f"{what}, for one batch.",
    )
