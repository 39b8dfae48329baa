"""A job for the whole graph and one per stage, each with its own executor."""

from typing import Any

import dagster as dg

from ingest_assets.defs.partitions import batches

INGEST_ALL = "ingest_all"

# Items already run in parallel inside a step, so a step of its own process pays only where two families
# of embeddings can be made side by side.
_side_by_side = dg.multiprocess_executor.configured({"max_concurrent": 2})

ingest_all = dg.define_asset_job(
    INGEST_ALL,
    selection=dg.AssetSelection.groups("ingest"),
    partitions_def=batches,
    executor_def=dg.in_process_executor,
    description="Documents to embeddings, for one batch.",
)


def _stage_job(name: str, selection: dg.AssetSelection, executor: dg.ExecutorDefinition) -> Any:
    description = f"Only {name}, for one batch."
    return dg.define_asset_job(
        f"{name}_only",
        selection=selection,
        partitions_def=batches,
        executor_def=executor,
        description=description,
    )


ALL_JOBS: list[Any] = [
    ingest_all,
    _stage_job("documents", dg.AssetSelection.assets("documents"), dg.in_process_executor),
    _stage_job("doctags", dg.AssetSelection.assets("doctags"), dg.in_process_executor),
    _stage_job("chunks", dg.AssetSelection.assets("chunks"), dg.in_process_executor),
    _stage_job("embeddings", dg.AssetSelection.key_prefixes("embeddings"), _side_by_side),
]
