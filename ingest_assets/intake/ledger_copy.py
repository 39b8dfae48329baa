"""A copy of the ledger for read-only commands, so that the ledger itself never changes.

Copies the bytes of a SQLite ledger, also while others write, without a lock or a file beside it.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

import sqlalchemy as sa

from ingest_assets.core.errors import IngestError
from ingest_assets.intake import schema
from ingest_assets.intake.database import Database
from ingest_assets.intake.ledger import Ledger

_MAX_TRIES = 5  # if all fail, another process writes all the time
_WAL_HEADER_BYTES = 32  # from SQLite's file format; it holds two salts that change when the log restarts
_BLOCK_BYTES = 256 * 1024
_ROWS_AT_A_TIME = 10_000
# Two writes within one tick of the file system's clock have the same time.
_TICK_SECONDS = 0.05
# SQLite's locks belong to the process and are lost when any descriptor of the file is closed. The process may
# also have this ledger open, so descriptors are never closed; there is one per copied file.
_DESCRIPTORS: dict[tuple[int, int], int] = {}


def open_copy(where: Path | str) -> Ledger:
    """Return a copy of the ledger, upgraded to this release; an empty ledger if there is none.

    The copy is unlinked as soon as it is open, so nothing remains when the process is killed.
    """
    folder = Path(tempfile.mkdtemp(prefix="ingest-look-"))
    try:
        copy = folder / "ledger.sqlite"
        exists = _copy_postgres(where, copy) if isinstance(where, str) else where.is_file()
        if exists and isinstance(where, Path):
            path = where.resolve()  # the log is stored beside the file itself
            if not any(_copy_consistently(path, copy) for _ in range(_MAX_TRIES)):
                _copy_while_written(path, copy)
        return Ledger(Database(copy, copy_of=where)) if exists else Ledger(None)
    finally:
        shutil.rmtree(folder)


def _copy_consistently(path: Path, copy: Path) -> bool:
    """Copy the file and then its log; False if they may not match.

    Pages moved from the log to the file in between are in both copies. Only a restart of the log, which
    changes its header, can lose pages.
    """
    before = _generation(path)
    if before is None:
        time.sleep(_TICK_SECONDS)
        return False
    _copy_bytes(path, copy)
    _wal(copy).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        shutil.copyfile(_wal(path), _wal(copy))
    return _generation(path) == before


def _generation(path: Path) -> tuple[object, ...] | None:
    """Return what stays equal while file and log match; None if a change could go unnoticed."""
    try:
        with _wal(path).open("rb") as log:
            header = log.read(_WAL_HEADER_BYTES)
    except FileNotFoundError:
        header = b""
    if len(header) == _WAL_HEADER_BYTES:
        return (header,)
    status = path.stat()
    if abs(time.time() - status.st_mtime) < _TICK_SECONDS:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _copy_bytes(path: Path, copy: Path) -> None:
    status = path.stat()
    descriptor = _DESCRIPTORS.get((status.st_dev, status.st_ino))
    if descriptor is None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        _DESCRIPTORS[(status.st_dev, status.st_ino)] = descriptor
    offset = 0
    with copy.open("wb") as target:
        while block := os.pread(descriptor, _BLOCK_BYTES, offset):
            target.write(block)
            offset += len(block)


def _copy_while_written(path: Path, copy: Path) -> None:
    """Copy with SQLite's backup, when others write so much that no plain copy is consistent."""
    for old in (copy, _wal(copy)):
        old.unlink(missing_ok=True)
    source = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    target = sqlite3.connect(copy)
    try:
        source.backup(target)
    except sqlite3.Error as error:
        raise IngestError(f"{path}: cannot be read while it is written ({error}); try again.") from None
    finally:
        target.close()
        source.close()


def _wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def _copy_postgres(url: str, copy: Path) -> bool:
    """Copy a PostgreSQL ledger to a SQLite file; False if there is no ledger yet."""
    source, target = Database(url, read_only=True), Database(copy, copy_of=url)
    try:
        with source.explained(), source.connect() as reader:
            version = schema.version_of(reader)
            schema.require_known(version, source.where)
            if version is None:
                return False
            with target.begin() as writer:
                schema.metadata.create_all(writer)
                # Columns that an older release lacks stay empty, as after an upgrade.
                inspector = sa.inspect(reader)
                for table in schema.metadata.sorted_tables:
                    if not inspector.has_table(table.name):
                        continue
                    names = {column["name"] for column in inspector.get_columns(table.name)}
                    columns = [c for c in table.columns if c.computed is None and c.name in names]
                    paged = reader.execution_options(yield_per=_ROWS_AT_A_TIME)
                    for page in paged.execute(sa.select(*columns)).mappings().partitions():
                        writer.execute(table.insert(), [dict(row) for row in page])
        return True
    finally:
        source.close()
        target.close()
