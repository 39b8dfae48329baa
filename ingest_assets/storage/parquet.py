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

# Tables that cannot be read: found, named, and put aside so that the next run makes them anew.


# Arrow's own complaints have no number. Others (no right to read, too many open files, a file that is gone)
# say all there is to say, and nothing is wrong with the bytes.
_TELLS_OF_THE_BYTES = (None, errno.EIO, errno.EBADMSG, errno.EISDIR)


@contextlib.contextmanager
def naming_damage(path: Path) -> Iterator[None]:
    """Reading, and only reading, tells of a damaged file; a full disk while writing must remove nothing."""
    try:
        yield
    except pa.ArrowMemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) not in _TELLS_OF_THE_BYTES:
            raise
        raise TableDamaged.at(path, error) from error


def require_whole(paths: Iterable[Path]) -> None:
    """Read all of the files, for those whom an error has told of one of them."""
    for path in paths:
        with naming_damage(path), pq.ParquetFile(path) as stored:
            for group in range(stored.num_row_groups):
                stored.read_row_group(group)


def put_aside(layout: Layout, path: Path) -> Path | None:
    """Move a damaged table of a home into quarantine, and give where it is now.

    Nothing happens to one that somebody works at, or that proves to be whole: it was replaced meanwhile, or a
    disk that was out of reach is back.
    """
    place = path.relative_to(layout.data)
    lock = FileLock(layout.lock(place.parent.as_posix(), place.stem))
    if not lock.try_acquire():
        return None
    try:
        require_whole([path])
    except TableDamaged:
        return moved_away(layout, path)
    except FileNotFoundError:  # somebody else has put it aside
        return None
    finally:
        lock.release()
    return None


def moved_away(layout: Layout, path: Path) -> Path:
    """The same for who holds the table's lock and knows that it is damaged."""
    place = path.relative_to(layout.data)
    room = layout.quarantine(place.parent.as_posix(), place.stem)
    room.mkdir(parents=True, exist_ok=True)
    names = (room / f"damaged-{number:04d}.parquet" for number in count(1))
    kept = next(name for name in names if not name.exists())
    shutil.move(path, kept)
    return kept


def write_parquet(
    path: Path, spec: TableSpec, tables: Iterable[pa.Table], footer: Mapping[str, str], *, waits: bool = True
) -> int:
    """Write rows atomically and give their number. Row groups depend on the rows, not on how they came."""
    rows = 0
    with replacing(path, waits=waits) as scratch, _writer(scratch, spec) as writer:
        for group in _regroup(tables, spec):
            writer.write_table(group, row_group_size=group.num_rows)
            rows += group.num_rows
        writer.add_key_value_metadata(dict(footer))
    return rows


def _writer(path: Path, spec: TableSpec) -> pq.ParquetWriter:
    """Each setting is part of the files' bytes: a change makes equal tables differ."""
    flat = [field.name for field in spec.schema if not pa.types.is_nested(field.type)]
    return pq.ParquetWriter(
        path,
        spec.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=list(spec.dictionary),
        use_byte_stream_split=list(spec.byte_stream_split),
        write_page_index=False,
        write_statistics=flat if spec.byte_stream_split else True,  # minima of vectors help no query
    )


def _regroup(tables: Iterable[pa.Table], spec: TableSpec) -> Iterable[pa.Table]:
    """Cut the stream into groups of exactly `rows_per_group` rows, the last one shorter."""
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
    """Reads runs of rows from a Parquet file, cheap when they are asked for in ascending order."""

    def __init__(self, path: Path, columns: list[str] | None = None) -> None:
        self._path = path
        with naming_damage(path):
            self._file = pq.ParquetFile(path)
        self._columns = columns
        self._starts = [0]
        for group in range(self._file.num_row_groups):
            self._starts.append(self._starts[-1] + self._file.metadata.row_group(group).num_rows)
        self._cached: tuple[int, pa.Table] | None = None

    def read(self, start: int, rows: int) -> pa.Table:
        """The rows `start .. start + rows`."""
        pieces = list(self.pieces(start, rows))
        if pieces:
            return pa.concat_tables(pieces)
        nothing = self._file.schema_arrow.empty_table()
        return nothing.select(self._columns) if self._columns else nothing

    def pieces(self, start: int, rows: int) -> Iterator[pa.Table]:
        """The same rows one row group after the other, so that no more than one need be in memory."""
        stop = start + rows
        for group, (first, end) in enumerate(pairwise(self._starts)):
            if first < stop and end > start:
                begin = max(start, first)
                yield self._group(group).slice(begin - first, min(stop, end) - begin)

    def _group(self, group: int) -> pa.Table:
        if self._cached is None or self._cached[0] != group:
            with naming_damage(self._path):
                self._cached = (group, self._file.read_row_group(group, columns=self._columns))
        return self._cached[1]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


# What a Parquet file says about itself, so that it is understood when every database is lost.


_PREFIX = "ingest."
_CLOCK_TICK_NS = 1_000_000_000  # the coarsest that file systems keep, but for FAT
_REMEMBERED = 16  # those of a batch, and some; of 500 documents each is an eighth of a MiB
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that could not be done, and the fingerprint with which it failed."""

    fingerprint: str
    error: StageError


@dataclass(frozen=True, slots=True)
class Footer:
    """The self-description of a table: which items it holds, in row order, and which failed."""

    stage_version: str
    config_hash: str
    items: Mapping[str, Record]
    failures: Mapping[str, Failure] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    schema_version: str = SCHEMA_VERSION

    def known_failure(self, item_id: str, fingerprint: str) -> StageError | None:
        """The failure of exactly this item as it is now, if there is one."""
        failure = self.failures.get(item_id)
        return failure.error if failure is not None and failure.fingerprint == fingerprint else None

    def as_metadata(self) -> dict[str, str]:
        """Key-value metadata for the Parquet footer; the same footer gives the same bytes."""
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


def read_footer(path: Path, *, often: bool = True) -> Footer | None:
    """The footer of a table or part; None when there is none that this version wrote whole.

    Tables are derived, so a damaged one counts as absent: its items are done again and it is replaced. A file
    that is read `often` is looked into once and remembered until it is another one.
    """
    try:
        state = _state(path) if often else None
        return _read(path) if state is None else _remembered(path, state)
    except FileNotFoundError:
        return None
    except (pa.ArrowInvalid, OSError) as error:
        _log.warning("%s is damaged and will be made again: %s", path, error)
        return None
    except (KeyError, ValueError) as error:
        _log.warning("%s has a footer that cannot be understood and will be made again: %s", path, error)
        return None


def _state(path: Path) -> tuple[int, ...] | None:
    """What tells a file from the one that replaces it; nothing while its clock might show both the same.

    By opening it: what is known of a file by its name may be seconds old where others share the file system.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
    if time.time_ns() - found.st_ctime_ns < _CLOCK_TICK_NS:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@functools.lru_cache(maxsize=_REMEMBERED)
def _remembered(path: Path, state: tuple[int, ...]) -> Footer | None:
    """By path and state; what cannot be read is tried again."""
    return _read(path)


def _read(path: Path) -> Footer | None:
    raw = pq.read_metadata(path).metadata or {}
    texts = {key.decode(): value.decode() for key, value in raw.items() if key.startswith(_PREFIX.encode())}
    values = {key.removeprefix(_PREFIX): value for key, value in texts.items()}
    if values.pop("schema_version", None) != SCHEMA_VERSION:
        return None
    items = {item: Record(mark, rows) for item, mark, rows in json.loads(values.pop("items"))}
    failures = {
        item: Failure(mark, StageError.model_validate(error))
        for item, mark, error in json.loads(values.pop("failures"))
    }
    return Footer(values.pop("stage_version"), values.pop("config_hash"), items, failures, values)
