"""Documents, judged: what deserves to be chunked."""

import dagster as dg

from ingest_assets.defs.assets.declaration import declared
from ingest_assets.defs.resources.runner import StageRunner
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.staged import Staged
from ingest_assets.defs.verdicts import verdict_metadata
from ingest_assets.stages.admission import AdmissionStage
from ingest_assets.storage.tables import Table


@dg.asset(
    **declared("admission"),
    pool="chunks",
    kinds={"parquet"},
    code_version=AdmissionStage.version,
)
def admission(
    context: dg.AssetExecutionContext,
    config: StageRunConfig,
    doctags: Table,
    documents: Table,
    runner: StageRunner,
) -> dg.Output[Staged]:
    """One row per converted document: the marks it came to, its tier, or why it was rejected."""
    staged = runner.run("admission", [doctags, documents], config, context)
    verdicts = verdict_metadata(runner.home.open(), staged.commit)
    return dg.Output(staged, metadata=staged.as_metadata() | verdicts)
