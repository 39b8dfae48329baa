"""The IO manager: commits staged parts into one Parquet file per asset and batch, and loads lazy scans."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pyarrow as pa

from ingest_assets.app.driver import STATISTICS, commit_staged, finish_stage, statistics_numbers
from ingest_assets.app.graph import GRAPH
from ingest_assets.app.home import Home
from ingest_assets.app.model_switch import PendingSwitch
from ingest_assets.app.repair import quarantining_damage
from ingest_assets.app.stage_run import Staged
from ingest_assets.core.schemas import LEXICAL_STATS, TableSpec
from ingest_assets.defs.keys import require_batches, unfinished_runs
from ingest_assets.storage.table import CommitResult, Table, open_table

ALLOW_MISSING = "allow_missing_partitions"
_PREVIEW_ROWS = 5
_PREVIEW_CHARS = 60
# Hashes and whole documents are useless in a table cell.
_NOT_PREVIEWED = {"content_hash", "fingerprint", "document"}


def parquet_tables(*, updates_statistics: bool = True) -> dg.IOManagerDefinition:
    """Return the IO manager of the run's home; steps and IO share the opened home."""

    @dg.io_manager(required_resource_keys={"home"})
    def open_tables(context: dg.InitResourceContext) -> ParquetTables:
        return ParquetTables(context.resources.home.open(), updates_statistics)

    return open_tables


@dataclass(frozen=True)
class ParquetTables(dg.IOManager):
    """Commits and loads `<home>/data/<asset>/<batch>.parquet` atomically.

    With `updates_statistics`, the last active run updates the statistics of the whole corpus.
    """

    home: Home
    updates_statistics: bool

    def handle_output(self, context: dg.OutputContext, obj: Staged) -> None:
        """Commit the parts atomically, and switch to a model set that is now complete."""
        home, stage, batch = self.home, obj.outcome.stage, obj.commit.batch
        committed, waiting = commit_staged(home, obj, context.log.info)
        with quarantining_damage(home):  # this is the first read of rows carried over
            metadata = table_metadata(committed, obj.commit.spec)
        if GRAPH[stage].has_sets:
            metadata |= set_metadata(home, stage, batch, waiting)
        context.add_output_metadata(metadata)
        stats = finish_stage(home, stage, partial(_is_alone, context)) if self.updates_statistics else None
        if stats is not None:
            context.log_event(dg.AssetMaterialization(STATISTICS, metadata=statistics_metadata(home, stats)))

    def load_input(self, context: dg.InputContext) -> Any:
        """Return a `Table`, or a lazy frame if the input is annotated as one."""
        asset = "/".join(context.asset_key.path)
        allowed = bool((context.definition_metadata or {}).get(ALLOW_MISSING))
        keys = list(context.asset_partition_keys)
        if allowed:
            known = self.home.ledger.batches()
            keys = [key for key in keys if key in known]
        else:
            require_batches(self.home, keys)
        table = open_table(self.home.layout, asset, keys, allow_missing=allowed)
        return table.scan() if context.dagster_type.typing_type is pl.LazyFrame else table


def _is_alone(context: dg.OutputContext) -> bool:
    """True if no other run of a batch is queued or running."""
    return all(run.run_id == context.run_id for run in unfinished_runs(context.step_context.instance))


def statistics_metadata(home: Home, committed: CommitResult) -> dict[str, Any]:
    """Return what the web UI shows about the corpus statistics."""
    metadata = table_metadata(committed, LEXICAL_STATS)
    rows = {"dagster/row_count": metadata.pop("dagster/partition_row_count")}
    return {**metadata, **rows, **statistics_numbers(home)}


def table_metadata(committed: CommitResult, spec: TableSpec) -> dict[str, Any]:
    """Return Dagster's standard metadata of a table, and a preview."""
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


def set_metadata(home: Home, stage: str, batch: str, waiting: PendingSwitch | None) -> dict[str, Any]:
    """Return the model set of a family's table, its path, and whether the set is active."""
    return {
        "set": home.requested_sets[stage].set,
        "set_is_current": waiting is None,
        "batches_missing": 0 if waiting is None else len(waiting.missing),
        "dagster/uri": home.layout.table(home.asset(stage), batch).as_uri(),
    }


def column_schema(spec: TableSpec) -> dg.TableSchema:
    """Return the columns with types and descriptions."""
    return dg.TableSchema(columns=[_column(field, spec) for field in spec.schema])


def _column(field: pa.Field, spec: TableSpec) -> dg.TableColumn:
    constraints = dg.TableColumnConstraints(nullable=field.nullable, unique=spec.key == (field.name,))
    return dg.TableColumn(field.name, str(field.type), spec.descriptions.get(field.name), constraints)


def preview(path: Path) -> str:
    """Return the first rows as a Markdown table with shortened values."""
    first = Table("", (path,)).read(lambda rows: rows.head(_PREVIEW_ROWS).drop(_NOT_PREVIEWED, strict=False))
    lines = ["| " + " | ".join(first.columns) + " |", "|" + "---|" * len(first.columns)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in first.iter_rows()]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if isinstance(value, list) and len(value) > 6 and isinstance(value[0], float):
        value = f"[{', '.join(f'{number:.3f}' for number in value[:4])}, … {len(value)} values]"
    text = " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= _PREVIEW_CHARS else text[: _PREVIEW_CHARS - 1] + "…"
