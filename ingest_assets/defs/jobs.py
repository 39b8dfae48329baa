"""A job for the whole graph and one per stage, each with its own executor."""

from typing import Any

import dagster as dg

from ingest_assets.config import ExecutorSettings
from ingest_assets.defs.partitions import batches

INGEST_ALL = "ingest_all"

_EXECUTORS = {"in_process": dg.in_process_executor, "multiprocess": dg.multiprocess_executor}

_STAGES = {
    "documents": dg.AssetSelection.assets("documents"),
    "doctags": dg.AssetSelection.assets("doctags"),
    "chunks": dg.AssetSelection.assets("chunks"),
    "embeddings": dg.AssetSelection.key_prefixes("embeddings"),
}


def jobs(executors: ExecutorSettings) -> list[Any]:
    """All jobs, each run for one batch at a time."""
    whole = dg.AssetSelection.groups("ingest")
    everything = _job(INGEST_ALL, whole, executors.all, "Documents to embeddings")
    stages = [
        _job(f"{name}_only", selection, getattr(executors, name), f"Only {name}")
        for name, selection in _STAGES.items()
    ]
    return [everything, *stages]


def _job(name: str, selection: dg.AssetSelection, executor: str, what: str) -> Any:
    return dg.define_asset_job(
        name,
        selection=selection,
        partitions_def=batches,
        executor_def=_EXECUTORS[executor],
        description=f"{what}, for one batch.",
    )
