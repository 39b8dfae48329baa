"""The asset graph: one asset per stage of `app/graph.py`, and the statistics of the whole corpus."""

from collections import Counter
from typing import Any

import dagster as dg

from ingest_assets.app.driver import (
    COUNTED_STAGE,
    STATISTICS,
    make_statistics,
    statistics_are_due,
    statistics_numbers,
)
from ingest_assets.app.graph import Node
from ingest_assets.app.stage_run import Staged
from ingest_assets.core.schemas import LEXICAL_STATS, TableSpec
from ingest_assets.defs.io_manager import column_schema, statistics_metadata
from ingest_assets.defs.keys import asset_key, batches
from ingest_assets.defs.resources import HomeResource, StageRunConfig, StageRunner, staged_metadata

_OWNERS = ["team:ingest"]


def stage_asset(stage: str, node: Node) -> dg.AssetsDefinition:
    """Return the asset of a stage. Its key, group and columns are declared, so the catalogue shows them
    before the first run."""
    reads = {asset_key(above).to_python_identifier(): asset_key(above) for above in node.reads}

    @dg.asset(
        key=asset_key(stage),
        ins={name: dg.AssetIn(key) for name, key in reads.items()},
        description=node.table.about,
        partitions_def=batches,
        pool=node.pool,
        kinds=set(node.kinds),
        code_version=node.stage.version,
        **_declared(node.table),
    )
    def run(
        context: dg.AssetExecutionContext,
        config: StageRunConfig,
        home: HomeResource,
        runner: StageRunner,
        **tables: Any,
    ) -> dg.Output[Staged]:
        staged, extra = runner.run(home.open(), stage, [tables[name] for name in reads], config, context)
        metadata = staged_metadata(staged) | {name: _shown(name, value) for name, value in extra.items()}
        return dg.Output(staged, metadata=metadata)

    return run


def _declared(table: TableSpec) -> dict[str, Any]:
    return {
        "group_name": "ingest",
        "owners": _OWNERS,
        "metadata": {"dagster/column_schema": column_schema(table), "dagster/table_name": table.asset},
    }


def _shown(name: str, value: Any) -> Any:
    """Show counts as a Markdown table with bars, the most frequent first."""
    if not isinstance(value, Counter):
        return value
    if not value:
        return dg.MetadataValue.md("none")
    heading, most = name.removesuffix("s"), max(value.values())
    shown = sorted(value.items(), key=lambda item: (-item[1], item[0]))[:20]
    lines = [f"| {key} | {count} | {'█' * max(1, round(20 * count / most))} |" for key, count in shown]
    return dg.MetadataValue.md("\n".join([f"| {heading} | documents | |", "|---|---:|---|", *lines]))


@dg.asset(
    key=STATISTICS,
    deps=[asset_key(COUNTED_STAGE)],
    kinds={"polars", "parquet"},
    code_version="1",
    **_declared(LEXICAL_STATS),
)
def lexical_stats(home: HomeResource) -> dg.MaterializeResult:
    """One row per term: the chunks that contain it, and its occurrences in all chunks."""
    opened = home.open()
    return dg.MaterializeResult(metadata=statistics_metadata(opened, make_statistics(opened)))


@dg.asset_check(
    asset=STATISTICS,
    description="The statistics match the current lexical tables. Only a warning: until they are updated, "
    "searches weigh terms by the previous state of the corpus.",
)
def lexical_stats_cover_every_batch(home: HomeResource) -> dg.AssetCheckResult:
    opened = home.open()
    tables = opened.tables(COUNTED_STAGE)
    chunks = sum(record.rows for record in tables.records.values())
    stored = {f"{name}_in_statistics": value for name, value in statistics_numbers(opened).items()}
    return dg.AssetCheckResult(
        passed=not statistics_are_due(opened),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"batches": len(tables.footers), "chunks": chunks, **stored},
    )
