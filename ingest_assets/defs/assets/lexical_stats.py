"""The corpus as a whole: what BM25 must know beyond single chunks."""

import dagster as dg

from ingest_assets.defs.assets.declaration import OWNERS
from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.healing import putting_damage_aside
from ingest_assets.defs.io_manager import column_schema, table_metadata
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.model.schemas import LEXICAL_STATS
from ingest_assets.stages.lexical_stats import VERSION, are_current, refresh_stats, stats_numbers


@dg.asset(
    key=LEXICAL_STATS.asset,
    deps=[GRAPH["lexical"].asset_key],
    group_name="ingest",
    owners=OWNERS,
    kinds={"polars", "parquet"},
    code_version=VERSION,
    metadata={
        "dagster/column_schema": column_schema(LEXICAL_STATS),
        "dagster/table_name": LEXICAL_STATS.asset,
    },
)
def lexical_stats(home: HomeResource) -> dg.MaterializeResult:
    """One row per term of the corpus: in how many chunks it is. The footer has N and the average length."""
    here = home.open()
    with putting_damage_aside(here):
        committed = refresh_stats(here.layout, here.tables("lexical"))
    metadata = table_metadata(committed, LEXICAL_STATS)
    rows = {"dagster/row_count": metadata.pop("dagster/partition_row_count")}
    return dg.MaterializeResult(metadata=metadata | rows | stats_numbers(here.layout))


@dg.asset_check(
    asset=LEXICAL_STATS.asset,
    description="The statistics are of the lexical tables as they are now. A warning: until they are made "
    "again, searches weigh terms by the corpus as it was.",
)
def lexical_stats_cover_every_batch(home: HomeResource) -> dg.AssetCheckResult:
    here = home.open()
    tables = here.tables("lexical")
    chunks = sum(record.rows for record in tables.records.values())
    return dg.AssetCheckResult(
        passed=are_current(here.layout, tables),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"batches": len(tables.footers), "chunks": chunks, **_said(stats_numbers(here.layout))},
    )


def _said(numbers: dict[str, float]) -> dict[str, float]:
    return {f"{name}_in_statistics": value for name, value in numbers.items()}
