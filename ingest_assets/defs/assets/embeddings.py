"""Chunks, as vectors: one asset per family."""

import dagster as dg

from ingest_assets.defs.assets.declaration import asset_metadata
from ingest_assets.defs.partitions import batches
from ingest_assets.defs.resources.runner import StageRunner
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.staged import Staged
from ingest_assets.model.schemas import LEXICAL, dense_spec
from ingest_assets.stages.embeddings import DenseStage, LexicalStage
from ingest_assets.storage.tables import Table

PACKAGED_DIM = 384


@dg.asset(
    key=["embeddings", "dense"],
    partitions_def=batches,
    pool="gpu",
    kinds={"torch", "parquet"},
    code_version=DenseStage.version,
    **asset_metadata(dense_spec(PACKAGED_DIM)),
)
def dense_embeddings(
    context: dg.AssetExecutionContext, config: StageRunConfig, chunks: Table, runner: StageRunner
) -> dg.Output[Staged]:
    """One unit vector per chunk, from the contextualized text."""
    staged = runner.run("dense", chunks, config, context)
    return dg.Output(staged, metadata=staged.as_metadata())


@dg.asset(
    key=["embeddings", "lexical"],
    partitions_def=batches,
    pool="gpu",
    kinds={"python", "parquet"},
    code_version=LexicalStage.version,
    **asset_metadata(LEXICAL),
)
def lexical_embeddings(
    context: dg.AssetExecutionContext, config: StageRunConfig, chunks: Table, runner: StageRunner
) -> dg.Output[Staged]:
    """Term counts per chunk, for BM25 at query time."""
    staged = runner.run("lexical", chunks, config, context)
    return dg.Output(staged, metadata=staged.as_metadata())
