"""The asset graph: one asset per stage, made from `app/graph.py`, and the statistics of the whole corpus."""

from collections import Counter
from typing import Any

import dagster as dg

from ingest_assets.app.driver import (
    COUNTED,
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
    """The asset of a stage. Its key, group and columns are declared, so that the catalogue is useful before
    the first run."""
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
    """Counts as a Markdown table with bars, the most frequent first."""
    if not isinstance(value, Counter):
        return value
    if not value:
        return dg.MetadataValue.md("none")
    what, most = name.removesuffix("s"), max(value.values())
    shown = sorted(value.items(), key=lambda each: (-each[1], each[0]))[:20]
    lines = [f"| {each} | {count} | {'█' * max(1, round(20 * count / most))} |" for each, count in shown]
    return dg.MetadataValue.md("\n".join([f"| {what} | documents | |", "|---|---:|---|", *lines]))


@dg.asset(
    key=STATISTICS,
    deps=[asset_key(COUNTED)],
    kinds={"polars", "parquet"},
    code_version="1",
    **_declared(LEXICAL_STATS),
)
def lexical_stats(home: HomeResource) -> dg.MaterializeResult:
    """One row per term of the corpus: in how many chunks it is. The footer has N and the average length."""
    here = home.open()
    return dg.MaterializeResult(metadata=statistics_metadata(here, make_statistics(here)))


@dg.asset_check(
    asset=STATISTICS,
    description="The statistics are of the lexical tables as they are now. A warning: until they are made "
    "again, searches weigh terms by the corpus as it was.",
)
def lexical_stats_cover_every_batch(home: HomeResource) -> dg.AssetCheckResult:
    here = home.open()
    tables = here.tables(COUNTED)
    chunks = sum(record.rows for record in tables.records.values())
    stored = {f"{name}_in_statistics": value for name, value in statistics_numbers(here).items()}
    return dg.AssetCheckResult(
        passed=not statistics_are_due(here),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"batches": len(tables.footers), "chunks": chunks, **stored},
    )
