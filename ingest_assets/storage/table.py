"""Tables and parts: read, merge and commit rows, and remove failures."""

import contextlib
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.core.errors import IngestError, TableDamaged, TableMissing
from ingest_assets.core.items import Record, is_current
from ingest_assets.core.layout import Layout
from ingest_assets.core.schemas import TableSpec
from ingest_assets.storage.atomic import sweep_scratch
from ingest_assets.storage.parquet import (
    Failure,
    Footer,
    RowReader,
    detect_damage,
    move_to_quarantine,
    read_footer,
    verify_readable,
    write_parquet,
)

if TYPE_CHECKING:
    import polars as pl


# Staged parts: each finished item is stored at once, so that a crash loses only items in flight.


class Parts:
    """The parts of one table and batch that are not committed yet."""

    def __init__(self, layout: Layout, spec: TableSpec, batch: str) -> None:
        self._layout = layout
        self._spec = spec
        self._batch = batch
        self._folder = layout.parts(spec.asset, batch)

    def write(self, item_id: str, fingerprint: str, rows: pa.Table) -> Path:
        """Store one item's rows atomically, without waiting for the disk."""
        path = self.path(item_id)
        footer = Footer("", "", {item_id: Record(fingerprint, rows.num_rows)})
        write_parquet(path, self._spec, [rows], footer.as_metadata(), waits=False)
        return path

    def path(self, item_id: str) -> Path:
        return self._layout.part(self._spec.asset, self._batch, item_id)

    def read(self, item_id: str) -> pa.Table:
        """Return the rows of one part; raise `TableDamaged` if it cannot be read."""
        path = self.path(item_id)
        with detect_damage(path):
            return pq.ParquetFile(path).read()

    def records(self) -> dict[str, Record]:
        """Return the staged records by item. A damaged part counts as missing: its item runs again."""
        files = sorted(self._folder.glob("*.parquet")) if self._folder.is_dir() else []
        footers = (read_footer(path, cached=False) for path in files)
        return {item: record for footer in footers if footer for item, record in footer.items.items()}

    def clear(self) -> None:
        """Remove all parts, after their rows are committed."""
        if self._folder.is_dir():
            shutil.rmtree(self._folder)


# The rows of a new file, in plan order: valid rows of the old file, and rows of the parts.


def row_offsets(records: Mapping[str, Record]) -> dict[str, int]:
    """Return the first row of each item; the footer lists items in row order."""
    starts = accumulate((record.rows for record in records.values()), initial=0)
    return dict(zip(records, starts, strict=False))


class ItemRows:
    """Rows of a table's items. Adjacent items are read together, one row group in memory at a time."""

    def __init__(self, path: Path, records: Mapping[str, Record]) -> None:
        self._records = records
        self._starts = row_offsets(records)
        self._reader = RowReader(path)

    def of(self, items: Iterable[str]) -> Iterator[pa.Table]:
        """Yield the rows of these items, in this order."""
        for start, rows in _runs((self._starts[item], self._records[item].rows) for item in items):
            yield from self._reader.pieces(start, rows)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


def _runs(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield starts and lengths; adjacent spans are joined."""
    begin = length = 0
    for start, rows in spans:
        if start == begin + length:
            length += rows
            continue
        if length:
            yield begin, length
        begin, length = start, rows
    if length:
        yield begin, length


def merge_rows(
    path: Path, old: Mapping[str, Record], items: Iterable[str], parts: Parts, fresh: Collection[str]
) -> Iterator[pa.Table]:
    """Yield rows of the items in this order: from their parts if `fresh`, else from the old file."""
    with contextlib.ExitStack() as stack:
        stored = stack.enter_context(contextlib.closing(ItemRows(path, old))) if old else None
        for is_fresh, group in groupby(items, key=fresh.__contains__):
            if is_fresh or stored is None:
                yield from map(parts.read, group)
            else:
                yield from stored.of(group)


@dataclass(frozen=True)
class Table:
    """The tables of one asset for one or more batches, read lazily."""

    asset: str
    paths: tuple[Path, ...]

    def scan(self) -> "pl.LazyFrame":
        """Return a lazy frame of all rows, batch after batch."""
        import polars as pl  # imported here because it takes 0.1 s in each worker, and most do not need it

        return pl.scan_parquet(list(self.paths), glob=False) if self.paths else pl.LazyFrame()

    def read(self, query: "Callable[[pl.LazyFrame], pl.LazyFrame]") -> "pl.DataFrame":
        """Return the query's result over all rows; raise `TableDamaged` for a file that cannot be read."""
        with detect_damaged_tables(self):
            return query(self.scan()).collect()

    @cached_property
    def footers(self) -> dict[Path, Footer]:
        """The footer of each file that has one."""
        footers = {path: read_footer(path) for path in self.paths}
        return {path: footer for path, footer in footers.items() if footer is not None}

    @property
    def records(self) -> dict[str, Record]:
        """The records of all files, by item."""
        return {item: record for footer in self.footers.values() for item, record in footer.items.items()}

    @property
    def failures(self) -> dict[str, Failure]:
        """The failures of all files, by item."""
        return {
            item: failure for footer in self.footers.values() for item, failure in footer.failures.items()
        }


@contextmanager
def detect_damaged_tables(*tables: Table) -> Iterator[None]:
    """Raise `TableDamaged` with the file's path if a query fails; errors of Polars do not name the file."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError):
        verify_readable(path for table in tables for path in table.paths)
        raise


@dataclass(frozen=True, slots=True)
class Commit:
    """The content of a table after a stage: its items in row order, each with its fingerprint."""

    spec: TableSpec
    batch: str
    stage_version: str
    config_hash: str
    items: Mapping[str, str]
    failures: Mapping[str, Failure] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a commit."""

    path: Path
    rows: int
    size_bytes: int
    changed: bool


def open_table(layout: Layout, asset: str, batches: Sequence[str], *, allow_missing: bool = False) -> Table:
    """Return the table of these batches; raise `TableMissing` for one without a readable file."""
    paths = {batch: layout.table(asset, batch) for batch in batches}
    missing = [batch for batch, path in paths.items() if read_footer(path) is None]
    if missing and not allow_missing:
        raise TableMissing(
            f"{asset} has no table for batch {', '.join(missing[:5])}. Run `ingest all` or materialize it."
        )
    return Table(asset, tuple(path for batch, path in paths.items() if batch not in missing))


def copy_to_quarantine(layout: Layout, asset: str, batch: str, label: str) -> Path | None:
    """Keep a copy of the table in quarantine before a forced run replaces it; return the copy's path.

    A hard link is enough, because tables are replaced by renaming and never written in place.
    """
    path = layout.table(asset, batch)
    if not path.is_file():
        return None
    copy = layout.quarantine(asset, batch) / f"{label}.parquet"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)
    try:
        copy.hardlink_to(path)
    except OSError:  # another disk, or one without hard links
        shutil.copy2(path, copy)
    return copy


def commit(layout: Layout, content: Commit) -> CommitResult:
    """Stream current rows of the old file and rows of the parts, in plan order, into a new file.

    The file stays as it is if nothing changed. The caller holds the table's lock.
    """
    path = layout.table(content.spec.asset, content.batch)
    sweep_scratch(path)
    old = read_footer(path)
    if path.is_dir():  # a file cannot replace a folder
        move_to_quarantine(layout, path)
    parts = Parts(layout, content.spec, content.batch)
    staged = parts.records()
    footer = _footer(content, old, staged)
    changed = old is None or bool(staged) or old.as_metadata() != footer.as_metadata()
    if changed:
        try:
            fresh = _current(staged, content.items)
            merged = merge_rows(path, old.items if old else {}, footer.items, parts, fresh)
            rows = (piece.cast(content.spec.schema) for piece in merged)
            write_parquet(path, content.spec, rows, footer.as_metadata())
        except TableDamaged as damaged:
            fate = "removed"
            if damaged.path == path:
                fate = f"moved to {move_to_quarantine(layout, path)}"
            else:
                damaged.path.unlink(missing_ok=True)
            raise IngestError(
                f"{damaged.path} was damaged and was {fate}. Run `ingest all` again to rebuild it."
            ) from damaged
    parts.clear()
    row_count = sum(record.rows for record in footer.items.values())
    return CommitResult(path, row_count, path.stat().st_size, changed)


def _footer(content: Commit, old: Footer | None, staged: Mapping[str, Record]) -> Footer:
    records = _current({**(old.items if old else {}), **_current(staged, content.items)}, content.items)
    items = {item: records[item] for item in content.items if item in records}
    missing = [item for item in content.items if item not in items and item not in content.failures]
    if missing:
        raise IngestError(
            f"{content.spec.asset} {content.batch}: {len(missing)} planned items have neither rows nor a "
            f"failure, first {missing[0]!r}. Another run changed the table; run `ingest all` again."
        )
    failures = {item: content.failures[item] for item in content.items if item not in items}
    return Footer(content.stage_version, content.config_hash, items, failures, dict(content.extra))


def _current(records: Mapping[str, Record], items: Mapping[str, str]) -> dict[str, Record]:
    return {item: record for item, record in records.items() if is_current(record, items.get(item, ""))}


# Remove failures from a table, so that the next run retries their items.


def forget_failures(layout: Layout, spec: TableSpec, batch: str, item_ids: Collection[str]) -> list[str]:
    """Remove these items' failures from the table's footer; return the items that had one.

    Rows and staged parts do not change, nor does a file without such failures. The caller holds the
    table's lock.
    """
    path = layout.table(spec.asset, batch)
    sweep_scratch(path)
    footer = read_footer(path)
    removed = [item for item in footer.failures if item in item_ids] if footer is not None else []
    if footer is None or not removed:
        return []
    others = {item: failure for item, failure in footer.failures.items() if item not in item_ids}
    rewrite(path, spec, footer, replace(footer, failures=others))
    return removed


def rewrite(path: Path, spec: TableSpec, old: Footer, new: Footer) -> None:
    """Rewrite a table with only the items of its new footer. The caller holds the table's lock.

    Keep the stored schema, because the settings, and with them the current schema, may have changed.
    """
    with detect_damage(path):
        as_stored = replace(spec, schema=pq.read_schema(path).remove_metadata())
    with contextlib.closing(ItemRows(path, old.items)) as stored:
        rows = (piece.replace_schema_metadata(None) for piece in stored.of(new.items))
        write_parquet(path, as_stored, rows, new.as_metadata())
