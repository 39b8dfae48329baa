"""Tables and parts: reading, merging, committing and forgetting rows."""

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
    moved_away,
    naming_damage,
    read_footer,
    require_whole,
    write_parquet,
)

if TYPE_CHECKING:
    import polars as pl


# Staged parts: each finished item rests on disk at once, so that a crash costs only what was running.


class Parts:
    """The parts of one table and batch that wait to be committed."""

    def __init__(self, layout: Layout, spec: TableSpec, batch: str) -> None:
        self._layout = layout
        self._spec = spec
        self._batch = batch
        self._folder = layout.parts(spec.asset, batch)

    def write(self, item_id: str, fingerprint: str, rows: pa.Table) -> Path:
        """Persist one item's rows atomically. The disk may take its time: the next item need not wait."""
        path = self.path(item_id)
        footer = Footer("", "", {item_id: Record(fingerprint, rows.num_rows)})
        write_parquet(path, self._spec, [rows], footer.as_metadata(), waits=False)
        return path

    def path(self, item_id: str) -> Path:
        return self._layout.part(self._spec.asset, self._batch, item_id)

    def read(self, item_id: str) -> pa.Table:
        """The rows of one part; `TableDamaged` when it cannot be read."""
        path = self.path(item_id)
        with naming_damage(path):
            return pq.ParquetFile(path).read()

    def records(self) -> dict[str, Record]:
        """What is staged, by item. A damaged part counts as absent: its item is simply done again."""
        files = sorted(self._folder.glob("*.parquet")) if self._folder.is_dir() else []
        footers = (read_footer(path, often=False) for path in files)
        return {item: record for footer in footers if footer for item, record in footer.items.items()}

    def clear(self) -> None:
        """Remove every part; call it once their rows are committed."""
        if self._folder.is_dir():
            shutil.rmtree(self._folder)


# The rows of a new file: what stays of the old one, and what the parts hold, in the order of the plan.


def row_offsets(records: Mapping[str, Record]) -> dict[str, int]:
    """The first row of each item; items stand in the footer in row order."""
    starts = accumulate((record.rows for record in records.values()), initial=0)
    return dict(zip(records, starts, strict=False))


class OldRows:
    """Rows of a table's items. What lies together is read together, one row group in memory at a time."""

    def __init__(self, path: Path, records: Mapping[str, Record]) -> None:
        self._records = records
        self._starts = row_offsets(records)
        self._reader = RowReader(path)

    def of(self, items: Iterable[str]) -> Iterator[pa.Table]:
        """Their rows, in this order."""
        for start, rows in _runs((self._starts[item], self._records[item].rows) for item in items):
            yield from self._reader.pieces(start, rows)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()


def _runs(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Starts and lengths, with those that follow each other as one."""
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


def merged_rows(
    path: Path, old: Mapping[str, Record], items: Iterable[str], parts: Parts, fresh: Collection[str]
) -> Iterator[pa.Table]:
    """Rows of the items in this order: of those that are fresh from their parts, of others from the file."""
    with contextlib.ExitStack() as stack:
        stored = stack.enter_context(contextlib.closing(OldRows(path, old))) if old else None
        for is_fresh, together in groupby(items, key=fresh.__contains__):
            if is_fresh or stored is None:
                yield from map(parts.read, together)
            else:
                yield from stored.of(together)


@dataclass(frozen=True)
class Table:
    """One asset's content over one or more batches, read lazily."""

    asset: str
    paths: tuple[Path, ...]

    def scan(self) -> "pl.LazyFrame":
        """All rows, batch after batch, nothing read until collected."""
        import polars as pl  # a tenth of a second, which each worker of every stage would pay for nothing

        return pl.scan_parquet(list(self.paths), glob=False) if self.paths else pl.LazyFrame()

    def read(self, query: "Callable[[pl.LazyFrame], pl.LazyFrame]") -> "pl.DataFrame":
        """What a query gives of all rows; a file that cannot be read is named."""
        with naming_damaged(self):
            return query(self.scan()).collect()

    @cached_property
    def footers(self) -> dict[Path, Footer]:
        """Each file's self-description."""
        found = {path: read_footer(path) for path in self.paths}
        return {path: footer for path, footer in found.items() if footer is not None}

    @property
    def records(self) -> dict[str, Record]:
        """What the table holds, by item."""
        return {item: record for footer in self.footers.values() for item, record in footer.items.items()}

    @property
    def failures(self) -> dict[str, Failure]:
        """What could not be done, by item."""
        return {
            item: failure for footer in self.footers.values() for item, failure in footer.failures.items()
        }


@contextmanager
def naming_damaged(*tables: Table) -> Iterator[None]:
    """What polars says of a file that it cannot read does not tell which."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError):
        require_whole(path for table in tables for path in table.paths)
        raise


@dataclass(frozen=True, slots=True)
class Commit:
    """What a table must hold after a stage: its items in row order, each with its fingerprint."""

    spec: TableSpec
    batch: str
    stage_version: str
    config_hash: str
    items: Mapping[str, str]
    failures: Mapping[str, Failure] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did."""

    path: Path
    rows: int
    size_bytes: int
    changed: bool


def existing_table(
    layout: Layout, asset: str, batches: Sequence[str], *, allow_missing: bool = False
) -> Table:
    """The table over the given batches; a batch without a whole file is an error unless that is allowed."""
    paths = {batch: layout.table(asset, batch) for batch in batches}
    missing = [batch for batch, path in paths.items() if read_footer(path) is None]
    if missing and not allow_missing:
        raise TableMissing(
            f"{asset} has no table for batch {', '.join(missing[:5])}; materialise {asset} for it first."
        )
    return Table(asset, tuple(path for batch, path in paths.items() if batch not in missing))


def set_aside(layout: Layout, asset: str, batch: str, label: str) -> Path | None:
    """Keep the table as it is now in quarantine, for a run that is about to replace all of it.

    A hard link is enough, where there are any: tables are replaced by renaming, never written in place.
    """
    path = layout.table(asset, batch)
    if not path.is_file():
        return None
    kept = layout.quarantine(asset, batch) / f"{label}.parquet"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.unlink(missing_ok=True)
    try:
        kept.hardlink_to(path)
    except OSError:  # another disk, or one without hard links
        shutil.copy2(path, kept)
    return kept


def commit(layout: Layout, wanted: Commit) -> Committed:
    """Stream the rows still current from the old file and the new parts, in plan order, into the new file.

    When nothing changed the file is not touched. The caller holds the table's lock.
    """
    path = layout.table(wanted.spec.asset, wanted.batch)
    sweep_scratch(path)
    old = read_footer(path)
    if path.is_dir():  # no file could take its place
        moved_away(layout, path)
    parts = Parts(layout, wanted.spec, wanted.batch)
    staged = parts.records()
    footer = _footer(wanted, old, staged)
    changed = old is None or bool(staged) or old.as_metadata() != footer.as_metadata()
    if changed:
        try:
            fresh = _current(staged, wanted.items)
            found = merged_rows(path, old.items if old else {}, footer.items, parts, fresh)
            as_now = (piece.cast(wanted.spec.schema) for piece in found)
            write_parquet(path, wanted.spec, as_now, footer.as_metadata())
        except TableDamaged as damaged:
            if damaged.path == path:
                moved_away(layout, path)
            else:
                damaged.path.unlink(missing_ok=True)
            raise IngestError(
                f"{damaged.path} was damaged on disk and is removed; run the batch again to make it anew."
            ) from damaged
    parts.clear()
    rows = sum(record.rows for record in footer.items.values())
    return Committed(path, rows, path.stat().st_size, changed)


def _footer(wanted: Commit, old: Footer | None, staged: Mapping[str, Record]) -> Footer:
    held = {**(old.items if old else {}), **_current(staged, wanted.items)}
    items = {item: held[item] for item, mark in wanted.items.items() if is_current(held.get(item), mark)}
    lost = [item for item in wanted.items if item not in items and item not in wanted.failures]
    if lost:
        raise IngestError(
            f"{wanted.spec.asset} {wanted.batch}: {len(lost)} planned items have neither rows nor a failure, "
            f"first {lost[0]!r}; another run changed the table meanwhile, run the batch again."
        )
    failures = {item: wanted.failures[item] for item in wanted.items if item not in items}
    return Footer(wanted.stage_version, wanted.config_hash, items, failures, dict(wanted.extra))


def _current(staged: Mapping[str, Record], items: Mapping[str, str]) -> dict[str, Record]:
    return {item: record for item, record in staged.items() if is_current(record, items.get(item, ""))}


# Taking failures out of a table, so that the next run tries their items again.


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
    rewrite(path, spec, footer, replace(footer, failures=kept))
    return found


def rewrite(path: Path, spec: TableSpec, old: Footer, new: Footer) -> None:
    """Write a table again with only what its new footer names. The caller holds the table's lock.

    Columns stay as they were written: the settings, and with them the schema, may be others by now.
    """
    with naming_damage(path):
        as_stored = replace(spec, schema=pq.read_schema(path).remove_metadata())
    with contextlib.closing(OldRows(path, old.items)) as stored:
        rows = (piece.replace_schema_metadata(None) for piece in stored.of(new.items))
        write_parquet(path, as_stored, rows, new.as_metadata())
