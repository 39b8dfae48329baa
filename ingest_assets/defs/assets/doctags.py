"""Documents, read."""

import dagster as dg

from ingest_assets.defs.assets.declaration import declared
from ingest_assets.defs.resources.runner import StageRunner
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.staged import Staged
from ingest_assets.stages.doctags import DoctagsStage
from ingest_assets.storage.tables import Table


@dg.asset(
    **declared("doctags"),
    pool="doctags",
    kinds={"docling", "parquet"},
    code_version=DoctagsStage.version,
)
def doctags(
    context: dg.AssetExecutionContext, config: StageRunConfig, documents: Table, runner: StageRunner
) -> dg.Output[Staged]:
    """One row per converted document: DocTags markup, the Docling document as JSON, counters."""
    staged = runner.run("doctags", [documents], config, context)
    return dg.Output(staged, metadata=staged.as_metadata())
