"""Taking failures out of a table, so that the next run tries their items again."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.model.schemas import TableSpec
from ingest_assets.storage.atomic import sweep_scratch
from ingest_assets.storage.damage import naming_damage
from ingest_assets.storage.footer import read_footer
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.parquet import write_parquet


def forget_failures(layout: Layout, spec: TableSpec, batch: str, item_ids: Collection[str]) -> list[str]:
    """Remove these items' failures from the table's footer; gives those that were there.

    Rows, items, their order and staged parts stay as they are, and so does a file that has none of the
    failures. The caller holds the table's lock.
    """
    path = layout.table(spec.asset, batch)
    sweep_scratch(path)
    footer = read_footer(path)
    found = [item for item in footer.failures if item in item_ids] if footer is not None else []
    if footer is None or not found:
        return []
    kept = {item: failure for item, failure in footer.failures.items() if item not in item_ids}
    with naming_damage(path):
        stored = pq.ParquetFile(path)
    with stored:
        # As it was written: the settings, and with them the columns, may be others by now.
        as_stored = replace(spec, schema=stored.schema_arrow.remove_metadata())
        write_parquet(path, as_stored, _rows(stored, path), replace(footer, failures=kept).as_metadata())
    return found


def _rows(stored: pq.ParquetFile, path: Path) -> Iterator[pa.Table]:
    for group in range(stored.num_row_groups):
        with naming_damage(path):
            rows = stored.read_row_group(group)
        yield rows.replace_schema_metadata(None)
