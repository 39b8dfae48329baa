"""What every asset declares alike."""

from typing import Any

from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.io_manager import column_schema
from ingest_assets.defs.partitions import batches

OWNERS = ["team:ingest"]


def declared(stage: str) -> dict[str, Any]:
    """Key, partitions, group, owners and columns, so that the catalogue is useful before the first run."""
    node = GRAPH[stage]
    return {
        "key": node.asset_key,
        "partitions_def": batches,
        "group_name": "ingest",
        "owners": OWNERS,
        "metadata": {
            "dagster/column_schema": column_schema(node.table),
            "dagster/table_name": node.table.asset,
        },
    }
