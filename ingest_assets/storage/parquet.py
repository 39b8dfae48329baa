"""Byte-deterministic Parquet: equal rows and equal footers give equal files."""

import contextlib
import errno
import functools
import json
import logging
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingest_assets.core.errors import StageError, TableDamaged
from ingest_assets.core.identity import canonical_json
from ingest_assets.core.items import Record
from ingest_assets.core.layout import Layout
from ingest_assets.core.schemas import SCHEMA_VERSION, TableSpec
from ingest_assets.storage.atomic import replacing
from ingest_assets.storage.locks import FileLock

# Damaged tables are detected, named and moved to quarantine, so that the next run rebuilds them.


# Arrow's own errors have no errno. Other errors (no permission, too many open files, a missing file) do not
# mean that the bytes are damaged.
_DAMAGE_ERRNOS = (None, errno.EIO, errno.EBADMSG, errno.EISDIR)


@contextlib.contextmanager
def detect_damage(path: Path) -> Iterator[None]:
    """Raise `TableDamaged` if reading fails. Not for writes: a full disk is not damage."""
    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) not in _DAMAGE_ERRNOS:
            raise
        raise TableDamaged.at(path, error) from error


def verify_readable(paths: Iterable[Path]) -> None:
    """Read all rows of the files; raise `TableDamaged` for the first that cannot be read."""
    for path in paths:
        with detect_damage(path), pq.ParquetFile(path) as stored:
            for group in range(stored.num_row_groups):
                stored.read_row_group(group)


def quarantine_if_damaged(layout: Layout, path: Path) -> Path | None:
    """Move a damaged table into quarantine and return its new path.

    Do nothing if the table is locked, or readable by now: it was replaced, or a disk was unavailable.
    """
    place = path.relative_to(layout.data)
    lock = FileLock(layout.lock(place.parent.as_posix(), place.stem))
    if not lock.try_acquire():
        return None
    try:
        verify_readable([path])
    except TableDamaged:
        return move_to_quarantine(layout, path)
    except FileNotFoundError:  # another process has moved it
        return None
    finally:
        lock.release()
    return None


def move_to_quarantine(layout: Layout, path: Path) -> Path:
    """Move a table into quarantine and return its new path. The caller holds the table's lock."""
    place = path.relative_to(layout.data)
    folder = layout.quarantine(place.parent.as_posix(), place.stem)
    folder.mkdir(parents=True, exist_ok=True)
    names = (folder / f"damaged-{number:04d}.parquet" for number in count(1))
    target = next(name for name in names if not name.exists())
    shutil.move(path, target)
    return target


def write_parquet(
    path: Path, spec: TableSpec, tables: Iterable[pa.Table], footer: Mapping[str, str], *, waits: bool = True
) -> int:
    """Write rows atomically and return their number. Row groups do not depend on how `tables` are split."""
    rows = 0
    with replacing(path, waits=waits) as scratch, _writer(scratch, spec) as writer:
        for group in _regroup(tables, spec):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
        writer.add_key_value_metadata(dict(footer))
    return rows


def _writer(path: Path, spec: TableSpec) -> pq.ParquetWriter:
    """Open the writer. A change of these settings changes the bytes of all tables."""
    flat = [field.name for field in spec.schema if not pa.types.is_nested(field.type)]
    return pq.ParquetWriter(
        path,
        spec.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=list(spec.dictionary),
        use_byte_stream_split=list(spec.byte_stream_split),
        write_page_index=False,
        write_statistics=flat if spec.byte_stream_split else True,  # minima of vectors are useless
    )


def _regroup(tables: Iterable[pa.Table], spec: TableSpec) -> Iterable[pa.Table]:
    """Yield groups of exactly `rows_per_group` rows; the last one can be shorter."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        while rows >= spec.rows_per_group:
            merged = pa.concat_tables(waiting)
            yield merged.slice(0, spec.rows_per_group).combine_chunks()
            rest = merged.slice(spec.rows_per_group)
            waiting, rows = [rest], rest.num_rows
    if rows:
        yield pa.concat_tables(waiting).combine_chunks()


class RowReader:
    """Reads ranges of rows from a Parquet file; fast if the ranges are in ascending order."""

    def __init__(self, path: Path, columns: list[str] | None = None) -> None:
        self._path = path
        with detect_damage(path):
            self._file = pq.ParquetFile(path)
        self._columns = columns
        self._starts = [0]
        for group in range(self._file.num_row_groups):
            self._starts.append(self._starts[-1] + self._file.metadata.row_group(group).num_rows)
        self._cached: tuple[int, pa.Table] | None = None

    def read(self, start: int, rows: int) -> pa.Table:
        """Return the rows `start .. start + rows`."""
        pieces = list(self.pieces(start, rows))
        if pieces:
            return pa.concat_tables(pieces)
        empty = self._file.schema_arrow.empty_table()
        return empty.select(self._columns) if self._columns else empty

    def pieces(self, start: int, rows: int) -> Iterator[pa.Table]:
        """Yield the same rows by row group, so that only one group is in memory."""
        stop = start + rows
        for group, (first, end) in enumerate(pairwise(self._starts)):
            if first < stop and end > start:
                begin = max(start, first)
                yield self._group(group).slice(begin - first, min(stop, end) - begin)

    def _group(self, group: int) -> pa.Table:
        if self._cached is None or self._cached[0] != group:
            with detect_damage(self._path):
                self._cached = (group, self._file.read_row_group(group, columns=self._columns))
        return self._cached[1]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


# The footer describes a Parquet file, so that it can be used without any database.


_PREFIX = "ingest."
_CLOCK_TICK_NS = 1_000_000_000  # the coarsest file time of common file systems, except FAT
_CACHED_FOOTERS = 16  # more than one batch has; a footer of 500 documents takes an eighth of a MiB
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """The error of a failed item, and the item's fingerprint at that time."""

    fingerprint: str
    error: StageError


@dataclass(frozen=True, slots=True)
class Footer:
    """The description of a table: its items in row order, and its failed items."""

    stage_version: str
    config_hash: str
    items: Mapping[str, Record]
    failures: Mapping[str, Failure] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    schema_version: str = SCHEMA_VERSION

    def known_failure(self, item_id: str, fingerprint: str) -> StageError | None:
        """Return the failure of this item with this fingerprint, if there is one."""
        failure = self.failures.get(item_id)
        return failure.error if failure is not None and failure.fingerprint == fingerprint else None

    def as_metadata(self) -> dict[str, str]:
        """Return key-value metadata for the Parquet footer; equal footers give equal bytes."""
        items = [[item, record.fingerprint, record.rows] for item, record in self.items.items()]
        failures = [
            [item, failure.fingerprint, failure.error.model_dump(mode="json")]
            for item, failure in self.failures.items()
        ]
        known = {
            "schema_version": self.schema_version,
            "stage_version": self.stage_version,
            "config_hash": self.config_hash,
            "items": canonical_json(items),
            "failures": canonical_json(failures),
        }
        return {_PREFIX + key: value for key, value in {**self.extra, **known}.items()}


def read_footer(path: Path, *, cached: bool = True) -> Footer | None:
    """Return the footer of a table or part; None if it is missing, damaged or of another schema version.

    A damaged table counts as missing: its items run again and it is replaced. With `cached`, the footer is
    kept in memory until the file changes.
    """
    try:
        state = _state(path) if cached else None
        return _read(path) if state is None else _read_cached(path, state)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (pa.ArrowInvalid, OSError) as error:
        if getattr(error, "errno", None) not in _DAMAGE_ERRNOS:
            raise  # the table may be intact: computing it again would cost what it holds
        _log.warning("%s is damaged and will be rebuilt: %s", path, error)
        return None
    except (KeyError, ValueError) as error:
        _log.warning("%s has an invalid footer and will be rebuilt: %s", path, error)
        return None


def _state(path: Path) -> tuple[int, ...] | None:
    """Return values that change if the file is replaced; None if it is too new to tell by its times.

    Open the file, because a network file system can answer a stat by name from a cache.
    """
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
    if time.time_ns() - stat.st_ctime_ns < _CLOCK_TICK_NS:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@functools.lru_cache(maxsize=_CACHED_FOOTERS)
def _read_cached(path: Path, state: tuple[int, ...]) -> Footer | None:
    """Read by path and state; errors are not cached."""
    return _read(path)


def _read(path: Path) -> Footer | None:
    raw = pq.read_metadata(path).metadata or {}
    texts = {key.decode(): value.decode() for key, value in raw.items() if key.startswith(_PREFIX.encode())}
    values = {key.removeprefix(_PREFIX): value for key, value in texts.items()}
    if values.pop("schema_version", None) != SCHEMA_VERSION:
        return None
    items = {item: Record(fingerprint, rows) for item, fingerprint, rows in json.loads(values.pop("items"))}
    failures = {
        item: Failure(fingerprint, StageError.model_validate(error))
        for item, fingerprint, error in json.loads(values.pop("failures"))
    }
    return Footer(values.pop("stage_version"), values.pop("config_hash"), items, failures, values)
