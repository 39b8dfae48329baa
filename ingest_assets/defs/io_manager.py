"""The IO manager: commits staged parts into one Parquet file per asset and batch, and loads lazy scans."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pyarrow as pa

from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.healing import putting_damage_aside
from ingest_assets.defs.home import Home
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.defs.sets import Building, cut_over, prune_others, prune_unwanted
from ingest_assets.defs.staged import Staged
from ingest_assets.model.schemas import TableSpec
from ingest_assets.storage.tables import Committed, Table, commit, existing_table

ALLOW_MISSING = "allow_missing_partitions"
_PREVIEW_ROWS = 5
_PREVIEW_CHARS = 60
_NOT_PREVIEWED = {"content_hash", "fingerprint", "document"}


class ParquetTables(dg.ConfigurableIOManager):
    """Atomic Parquet below `<home>/data/<asset>/<batch>.parquet`."""

    home: HomeResource

    def handle_output(self, context: dg.OutputContext, obj: Staged) -> None:
        """Commit the parts; the table is there whole, or as it was. A set that is whole by that serves."""
        home, stage, batch = self.home.open(), obj.outcome.stage, obj.commit.batch
        has_sets = stage in GRAPH and GRAPH[stage].has_sets
        with putting_damage_aside(home), released(obj):
            committed = commit(home.layout, obj.commit)
            metadata = table_metadata(committed, obj.commit.spec)
            if has_sets:
                prune_others(home, stage, batch)
            if stage == "chunks":
                prune_unwanted(home, batch)
        if has_sets:
            found = cut_over(home, stage, context.log.info)
            metadata |= set_metadata(home, stage, batch, found)
        context.add_output_metadata(metadata)

    def load_input(self, context: dg.InputContext) -> Any:
        """A `Table`, or a lazy frame where the input is annotated as one."""
        asset = "/".join(context.asset_key.path)
        allowed = bool((context.definition_metadata or {}).get(ALLOW_MISSING))
        layout = self.home.open().layout
        table = existing_table(layout, asset, list(context.asset_partition_keys), allow_missing=allowed)
        return table.scan() if context.dagster_type.typing_type is pl.LazyFrame else table


@contextmanager
def released(staged: Staged) -> Iterator[None]:
    """Its locks are let go of, however it ends."""
    try:
        yield
    finally:
        staged.release()


def table_metadata(committed: Committed, spec: TableSpec) -> dict[str, Any]:
    """What the Dagster UI understands of a table."""
    return {
        "dagster/partition_row_count": committed.rows,
        "dagster/column_schema": column_schema(spec),
        "dagster/uri": committed.path.as_uri(),
        "dagster/table_name": spec.asset.partition("@")[0],
        "dagster/storage_kind": "parquet",
        "size_bytes": committed.size_bytes,
        "file_changed": committed.changed,
        "preview": dg.MetadataValue.md(preview(committed.path)),
    }


def set_metadata(home: Home, stage: str, batch: str, found: Building | None) -> dict[str, Any]:
    """Which set a family's table is of, where it is by now, and whether readers see it already."""
    return {
        "set": home.set_mark(stage).set,
        "set_is_current": found is None,
        "batches_missing": 0 if found is None else len(found.missing),
        "dagster/uri": home.layout.table(home.asset(stage), batch).as_uri(),
    }


def column_schema(spec: TableSpec) -> dg.TableSchema:
    """Columns with their types and what they mean."""
    return dg.TableSchema(columns=[_column(field, spec) for field in spec.schema])


def _column(field: pa.Field, spec: TableSpec) -> dg.TableColumn:
    constraints = dg.TableColumnConstraints(nullable=field.nullable, unique=spec.key == (field.name,))
    return dg.TableColumn(field.name, str(field.type), spec.descriptions.get(field.name), constraints)


def preview(path: Path) -> str:
    """The first rows as a Markdown table, long values cut."""
    first = Table("", (path,)).read(lambda rows: rows.head(_PREVIEW_ROWS).drop(_NOT_PREVIEWED, strict=False))
    lines = ["| " + " | ".join(first.columns) + " |", "|" + "---|" * len(first.columns)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in first.iter_rows()]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, list) and len(value) > 6 and isinstance(value[0], float):
        value = f"[{', '.join(f'{number:.3f}' for number in value[:4])}, … {len(value)} values]"
    text = " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= _PREVIEW_CHARS else text[: _PREVIEW_CHARS - 1] + "…"
