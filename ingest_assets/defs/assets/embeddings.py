"""Chunks, as vectors: one asset per family."""

import dagster as dg

from ingest_assets.defs.assets.declaration import declared
from ingest_assets.defs.resources.runner import StageRunner
from ingest_assets.defs.run_config import StageRunConfig
from ingest_assets.defs.staged import Staged
from ingest_assets.stages.dense import DenseStage
from ingest_assets.stages.lexical import LexicalStage
from ingest_assets.stages.sparse import SparseStage
from ingest_assets.storage.tables import Table


@dg.asset(
    **declared("dense"),
    pool="gpu",
    kinds={"torch", "parquet"},
    code_version=DenseStage.version,
)
def dense_embeddings(
    context: dg.AssetExecutionContext, config: StageRunConfig, chunks: Table, runner: StageRunner
) -> dg.Output[Staged]:
    """One unit vector per chunk, from the contextualized text."""
    staged = runner.run("dense", [chunks], config, context)
    return dg.Output(staged, metadata=staged.as_metadata())


@dg.asset(
    **declared("sparse"),
    pool="gpu",
    kinds={"torch", "parquet"},
    code_version=SparseStage.version,
)
def sparse_embeddings(
    context: dg.AssetExecutionContext, config: StageRunConfig, chunks: Table, runner: StageRunner
) -> dg.Output[Staged]:
    """Weighted vocabulary entries per chunk, where a model of the SPLADE kind is configured."""
    staged = runner.run("sparse", [chunks], config, context)
    return dg.Output(staged, metadata=staged.as_metadata())


@dg.asset(
    **declared("lexical"),
    pool="lexical",
    kinds={"python", "parquet"},
    code_version=LexicalStage.version,
)
def lexical_embeddings(
    context: dg.AssetExecutionContext,
    config: StageRunConfig,
    chunks: Table,
    admission: Table,
    runner: StageRunner,
) -> dg.Output[Staged]:
    """Term counts per chunk, for BM25 at query time."""
    staged = runner.run("lexical", [chunks, admission], config, context)
    return dg.Output(staged, metadata=staged.as_metadata())
