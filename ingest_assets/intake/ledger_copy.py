"""A ledger to look at: a copy that may be changed, so that the ledger itself never is.

No lock is taken and no file is made beside a SQLite ledger: its bytes are copied, also while others write.
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

_TRIES = 5  # after so many, somebody writes all the time
_WAL_HEADER_BYTES = 32  # as in SQLite's file format; it holds two salts that change when the log begins anew
_BLOCK_BYTES = 256 * 1024
_ROWS_AT_A_TIME = 10_000
# Two writes within one tick of a file system's clock look like one.
_TICK_SECONDS = 0.05
# SQLite's locks belong to the process and are lost when any descriptor of the file is closed. A process may
# have this ledger open otherwise, so the descriptors are kept, one for each file ever looked at.
_KEPT: dict[tuple[int, int], int] = {}


def look_at(where: Path | str) -> Ledger:
    """A copy of a ledger as it is now, brought up to this release; an empty one where there is none.

    The copy loses its name as soon as it is open: whatever ends this process, nothing is left behind.
    """
    folder = Path(tempfile.mkdtemp(prefix="ingest-look-"))
    try:
        copy = folder / "ledger.sqlite"
        is_there = _copy_postgres(where, copy) if isinstance(where, str) else where.is_file()
        if is_there and isinstance(where, Path):
            path = where.resolve()  # the log lies beside the file itself
            if not any(_is_copied_whole(path, copy) for _ in range(_TRIES)):
                _copy_while_written(path, copy)
        return Ledger(Database(copy, copy_of=where)) if is_there else Ledger(None)
    finally:
        shutil.rmtree(folder)


def _is_copied_whole(path: Path, copy: Path) -> bool:
    """Copy the file and then its log; False when they may not fit together.

    What is moved from the log to the file in between is in both. Only when the log begins anew, which changes
    its header, is something in neither.
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
    """What stays the same as long as file and log fit together; None when a change might not be seen."""
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
    descriptor = _KEPT.get((status.st_dev, status.st_ino))
    if descriptor is None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(descriptor)
        _KEPT[(status.st_dev, status.st_ino)] = descriptor
    offset = 0
    with copy.open("wb") as target:
        while block := os.pread(descriptor, _BLOCK_BYTES, offset):
            target.write(block)
            offset += len(block)


def _copy_while_written(path: Path, copy: Path) -> None:
    """Others write so much that no plain copy is whole: read as they do, with the files they have made."""
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
    """False where there is no ledger yet."""
    source, target = Database(url, read_only=True), Database(copy, copy_of=url)
    try:
        with source.explained(), source.connect() as reading:
            version = schema.version_of(reading)
            schema.require_known(version, source.where)
            if version is None:
                return False
            with target.begin() as writing:
                schema.metadata.create_all(writing)
                # What an older release did not have yet is left empty, as an upgrade would.
                found = sa.inspect(reading)
                for table in schema.metadata.sorted_tables:
                    if not found.has_table(table.name):
                        continue
                    there = {column["name"] for column in found.get_columns(table.name)}
                    columns = [c for c in table.columns if c.computed is None and c.name in there]
                    paged = reading.execution_options(yield_per=_ROWS_AT_A_TIME)
                    for some in paged.execute(sa.select(*columns)).mappings().partitions():
                        writing.execute(table.insert(), [dict(row) for row in some])
        return True
    finally:
        source.close()
        target.close()
