"""What every asset declares alike."""

from typing import Any

from ingest_assets.defs.io_manager import column_schema
from ingest_assets.model.schemas import TableSpec

OWNERS = ["team:ingest"]


def asset_metadata(spec: TableSpec) -> dict[str, Any]:
    """Group, owners and columns, so that the catalogue is useful before the first run."""
    return {
        "group_name": "ingest",
        "owners": OWNERS,
        "metadata": {"dagster/column_schema": column_schema(spec), "dagster/table_name": spec.asset},
    }
