"""Documents, read."""

import dagster as dg

from ingest_assets.defs.assets.declaration import asset_metadata
from ingest_assets.defs.partitions import batches
from ingest_assets.defs.resources.runner import StageRunner
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.staged import Staged
from ingest_assets.model.schemas import DOCTAGS
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.storage.tables import Table


@dg.asset(
    partitions_def=batches,
    pool="doctags",
    kinds={"docling", "parquet"},
    code_version=DoctagsStage.version,
    **asset_metadata(DOCTAGS),
)
def doctags(
    context: dg.AssetExecutionContext, config: StageRunConfig, documents: Table, runner: StageRunner
) -> dg.Output[Staged]:
    """One row per converted document: DocTags markup, the Docling document as JSON, counters."""
    staged = runner.run("doctags", documents, config, context)
    return dg.Output(staged, metadata=staged.as_metadata())
