"""Documents, cut into pieces a model can read."""

import dagster as dg

from ingest_assets.defs.assets.declaration import declared
from ingest_assets.defs.resources.runner import StageRunner
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.staged import Staged
from ingest_assets.stages.chunks import ChunksStage
from ingest_assets.storage.tables import Table


@dg.asset(
    **declared("chunks"),
    pool="chunks",
    kinds={"docling", "parquet"},
    code_version=ChunksStage.version,
)
def chunks(
    context: dg.AssetExecutionContext,
    config: StageRunConfig,
    doctags: Table,
    admission: Table,
    runner: StageRunner,
) -> dg.Output[Staged]:
    """One row per chunk: text, contextualized text, headings, pages, tokens, provenance."""
    staged = runner.run("chunks", [doctags, admission], config, context)
    return dg.Output(staged, metadata=staged.as_metadata())
