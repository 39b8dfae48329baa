"""The IO manager: commits staged parts into one Parquet file per asset and batch, and loads lazy scans."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pyarrow as pa

from ingest_assets.app.driver import STATISTICS, commit_staged, finish_alone, statistics_numbers
from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home
from ingest_assets.app.model_switch import Building
from ingest_assets.app.repair import putting_damage_aside
from ingest_assets.app.stage_run import Staged
from ingest_assets.core.schemas import LEXICAL_STATS, TableSpec
from ingest_assets.defs.keys import unfinished_runs
from ingest_assets.storage.table import Committed, Table, existing_table

ALLOW_MISSING = "allow_missing_partitions"
_PREVIEW_ROWS = 5
_PREVIEW_CHARS = 60
# Hashes and whole documents tell nothing in a cell.
_NOT_PREVIEWED = {"content_hash", "fingerprint", "document"}


def parquet_tables(*, finishes: bool = True) -> dg.IOManagerDefinition:
    """The IO manager of the run's own home: steps and IO share the one that is opened."""

    @dg.io_manager(required_resource_keys={"home"})
    def open_tables(context: dg.InitResourceContext) -> ParquetTables:
        return ParquetTables(context.resources.home.open(), finishes)

    return open_tables


@dataclass(frozen=True)
class ParquetTables(dg.IOManager):
    """Atomic Parquet below `<home>/data/<asset>/<batch>.parquet`.

    With `finishes`, for runs that no command finishes, the last one makes what is of the whole corpus.
    """

    home: Home
    finishes: bool

    def handle_output(self, context: dg.OutputContext, obj: Staged) -> None:
        """Commit the parts; the table is there whole, or as it was. A set that is whole by that serves."""
        home, stage, batch = self.home, obj.outcome.stage, obj.commit.batch
        committed, building = commit_staged(home, obj, context.log.info)
        with putting_damage_aside(home):  # rows that were carried over are read here for the first time
            metadata = table_metadata(committed, obj.commit.spec)
        if GRAPH[stage].has_sets:
            metadata |= set_metadata(home, stage, batch, building)
        context.add_output_metadata(metadata)
        made = finish_alone(home, stage, partial(_is_alone, context)) if self.finishes else None
        if made is not None:
            context.log_event(dg.AssetMaterialization(STATISTICS, metadata=statistics_metadata(home, made)))

    def load_input(self, context: dg.InputContext) -> Any:
        """A `Table`, or a lazy frame where the input is annotated as one."""
        asset = "/".join(context.asset_key.path)
        allowed = bool((context.definition_metadata or {}).get(ALLOW_MISSING))
        table = existing_table(
            self.home.layout, asset, list(context.asset_partition_keys), allow_missing=allowed
        )
        return table.scan() if context.dagster_type.typing_type is pl.LazyFrame else table


def _is_alone(context: dg.OutputContext) -> bool:
    """True when no other run of a batch is queued or running: the last one finishes for all."""
    return all(run.run_id == context.run_id for run in unfinished_runs(context.step_context.instance))


def statistics_metadata(home: Home, made: Committed) -> dict[str, Any]:
    """What the web UI shows of the statistics of the whole corpus."""
    metadata = table_metadata(made, LEXICAL_STATS)
    rows = {"dagster/row_count": metadata.pop("dagster/partition_row_count")}
    return {**metadata, **rows, **statistics_numbers(home)}


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
        "set": home.set_marks[stage].set,
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
