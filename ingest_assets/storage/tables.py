"""Tables as readers see them, and the commit that makes them."""

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import polars as pl
import pyarrow as pa

from ingest_assets.model.errors import IngestError, TableMissing
from ingest_assets.model.items import Record, is_current
from ingest_assets.model.schemas import TableSpec
from ingest_assets.storage.atomic import sweep_scratch
from ingest_assets.storage.footer import Failure, Footer, read_footer
from ingest_assets.storage.layout import Layout
from ingest_assets.storage.parquet import RowReader, write_parquet
from ingest_assets.storage.parts import Parts


class DamagedRows(IngestError):
    """A file whose footer is whole and whose rows are not."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is damaged")
        self.path = path


@dataclass(frozen=True)
class Table:
    """One asset's content over one or more batches, read lazily."""

    asset: str
    paths: tuple[Path, ...]

    def scan(self) -> pl.LazyFrame:
        """All rows, batch after batch, nothing read until collected."""
        return pl.scan_parquet(list(self.paths), glob=False) if self.paths else pl.LazyFrame()

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


def row_offsets(records: Mapping[str, Record]) -> dict[str, int]:
    """The first row of each item; items stand in the footer in row order."""
    starts = accumulate((record.rows for record in records.values()), initial=0)
    return dict(zip(records, starts, strict=False))


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
    parts = Parts(layout, wanted.spec, wanted.batch)
    staged = parts.records()
    footer = _footer(wanted, old, staged)
    changed = old is None or bool(staged) or old.as_metadata() != footer.as_metadata()
    if changed:
        try:
            write_parquet(path, wanted.spec, _rows(path, wanted, old, parts, staged), footer.as_metadata())
        except DamagedRows as damaged:
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


def _rows(
    path: Path, wanted: Commit, old: Footer | None, parts: Parts, staged: Mapping[str, Record]
) -> Iterator[pa.Table]:
    fresh = _current(staged, wanted.items)
    offsets = row_offsets(old.items) if old else {}
    reader = RowReader(path) if old else None
    try:
        for item, mark in wanted.items.items():
            if item in fresh:
                with naming_damage(parts.path(item)):
                    rows = parts.read(item)
            elif reader is not None and old is not None and is_current(old.items.get(item), mark):
                with naming_damage(path):
                    rows = reader.read(offsets[item], old.items[item].rows)
            else:
                continue
            yield rows.cast(wanted.spec.schema)
    finally:
        if reader is not None:
            reader.close()


@contextlib.contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """Reading, and only reading, tells of a damaged file; a full disk while writing must remove nothing."""
    try:
        yield
    except (pa.ArrowInvalid, OSError) as error:
        raise DamagedRows(path) from error
