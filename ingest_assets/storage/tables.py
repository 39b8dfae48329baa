"""Tables as readers see them, and the commit that makes them."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ingest_assets.model.errors import IngestError, TableDamaged, TableMissing
from ingest_assets.model.items import Record, is_current
from ingest_assets.model.schemas import TableSpec
from ingest_assets.storage.atomic import sweep_scratch
from ingest_assets.storage.damage import moved_away, require_whole
from ingest_assets.storage.footer import Failure, Footer, read_footer
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.merging import merged_rows
from ingest_assets.storage.parquet import write_parquet
from ingest_assets.storage.parts import Parts

if TYPE_CHECKING:
    import polars as pl


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
