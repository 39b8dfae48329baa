"""The first asset: what the watched folders hold and what the queue brings."""

import dagster as dg

from ingest_assets.defs.assets.declaration import declared
from ingest_assets.defs.resources.acquirer import ArtifactAcquirer
from ingest_assets.defs.resources.runner import StageRunner
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.staged import Staged
from ingest_assets.stages.documents import DocumentsStage


@dg.asset(
    **declared("documents"),
    pool="fetch",
    kinds={"file", "parquet"},
    code_version=DocumentsStage.version,
)
def documents(
    context: dg.AssetExecutionContext,
    config: StageRunConfig,
    acquirer: ArtifactAcquirer,
    runner: StageRunner,
) -> dg.Output[Staged]:
    """One row per acquired document: where it came from, its bytes' hash, where the bytes rest."""
    acquired = acquirer.run(context)
    staged = runner.run("documents", [], config, context)
    return dg.Output(staged, metadata=staged.as_metadata() | acquired)
