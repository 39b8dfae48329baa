"""Taking documents out of a table that nobody makes again: other sets of a family hold only what is there."""

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.model.errors import TableDamaged
from ingest_assets.model.schemas import TableSpec
from ingest_assets.storage.atomic import sweep_scratch
from ingest_assets.storage.damage import naming_damage
from ingest_assets.storage.footer import Footer, read_footer
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.merging import OldRows
from ingest_assets.storage.parquet import write_parquet
from ingest_assets.storage.parts import Parts
from ingest_assets.storage.tables import Table


def prune(layout: Layout, spec: TableSpec, batch: str, chunks: Table, *, serves: bool = False) -> list[str]:
    """Remove from a set's table each document that is not chunked any more; gives which.

    Also those that are cut in another way now, unless the set still serves: until the new one is whole, old
    vectors are better than none. Staged parts go too. A file with nothing to remove stays as it is, one that
    is damaged is removed: it is derived. The caller holds the table's lock.
    """
    path = layout.table(spec.asset, batch)
    sweep_scratch(path)
    Parts(layout, spec, batch).clear()
    footer = read_footer(path)
    if footer is None:
        path.unlink(missing_ok=True)
        return []
    try:
        gone = (footer.items.keys() | footer.failures.keys()) - chunks.records.keys()
        if not serves:
            gone |= _not_chunked_so(path, chunks)
        if gone:
            _rewrite(path, spec, footer, gone)
    except TableDamaged as damaged:
        if damaged.path != path:
            raise
        path.unlink(missing_ok=True)
        return list(footer.items)
    return [item for item in footer.items if item in gone]


def _not_chunked_so(path: Path, chunks: Table) -> set[str]:
    """Documents with a row whose chunk is not there: whoever finds it would find it in vain."""
    with naming_damage(path):
        rows = pl.DataFrame(pq.ParquetFile(path).read(columns=["chunk_id", "doc_id"]))
    there = chunks.read(lambda rows: rows.select("chunk_id"))
    return set(rows.join(there, on="chunk_id", how="anti")["doc_id"])


def _rewrite(path: Path, spec: TableSpec, footer: Footer, gone: Collection[str]) -> None:
    with naming_damage(path):
        schema = pq.read_schema(path).remove_metadata()
    kept = {item: record for item, record in footer.items.items() if item not in gone}
    failures = {item: failure for item, failure in footer.failures.items() if item not in gone}
    as_stored = replace(spec, schema=schema)  # its dimension is its own
    marks = replace(footer, items=kept, failures=failures).as_metadata()
    write_parquet(path, as_stored, _rows(path, footer, kept), marks)


def _rows(path: Path, footer: Footer, kept: Collection[str]) -> Iterator[pa.Table]:
    with closing(OldRows(path, footer.items)) as stored:
        for rows in stored.of(kept):
            yield rows.replace_schema_metadata(None)
