"""Vector cache: one SQLite file of vectors by model and text, so that only new texts are embedded.

The file can be deleted at any time. No error here fails an item: a failed read is a miss, and a vector that
could not be written is computed again later.
"""

import contextlib
import functools
import hashlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from ingest_assets.core.identity import UNIT_SEPARATOR, sha256_text

CACHE_FILE = "vectors.sqlite"

T = TypeVar("T")
_log = logging.getLogger(__name__)
_FLOAT = np.dtype("<f4")
_CHECKSUM_BYTES = 16
_BUSY_SECONDS = 5.0  # other writers hold the lock for milliseconds
_KEPT_SHARE = 0.9  # of the size limit, after an eviction: keeps evictions rare
_ROW_BYTES = 160  # overhead of a row: two copies of the key, and free space in B-trees
_PAGE_BYTES = 8192  # holds five vectors of 384 numbers with little waste
_FORMAT = (0x1A6E5743, 2)  # application_id, user_version
_CREATE = f"""
PRAGMA page_size={_PAGE_BYTES};
PRAGMA auto_vacuum=INCREMENTAL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, content BLOB NOT NULL);
PRAGMA application_id={_FORMAT[0]};
PRAGMA user_version={_FORMAT[1]};
COMMIT;
"""
# UnicodeDecodeError: an error message of SQLite can quote a damaged name.
_ERRORS = (sqlite3.Error, OSError, UnicodeDecodeError)


@functools.cache
def open_cache(path: Path, max_bytes: int) -> "VectorCache":
    """Return this process's cache for the file; threads share it."""
    return VectorCache(path, max_bytes)


class VectorCache:
    """Vectors by model and text, returned bit for bit; above `max_bytes` the oldest are deleted.

    Threads share one object, processes share the file. A forked process must not use a cache that its parent
    had opened. Only the first failure is logged.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened_file: tuple[int, int] | None = None
        self._has_warned = False

    def get(self, space: str, texts: Sequence[str]) -> list[np.ndarray | None]:
        """Return each text's vector, or None; the arrays are read-only."""
        keys = [_key(space, text) for text in texts]

        def read(connection: sqlite3.Connection) -> dict[bytes, np.ndarray | None]:
            select = "SELECT content FROM vectors WHERE key = ?"
            return {key: _vector(key, connection.execute(select, (key,)).fetchone()) for key in set(keys)}

        vectors = self._try(read) or {}
        return [vectors.get(key) for key in keys]

    def put(self, space: str, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Store one row of `vectors` per text, replacing older ones."""
        rows = []
        for text, vector in zip(texts, np.ascontiguousarray(vectors, dtype=_FLOAT), strict=True):
            key, numbers = _key(space, text), vector.tobytes()
            rows.append((key, _checksum(key, numbers) + numbers))
        if not rows:
            return
        # All rows have the same size. Small transactions let eviction keep the file within its limit.
        row_bytes = len(rows[0][1]) + _ROW_BYTES
        group = max(1, self._max_bytes // 4 // row_bytes)
        for start in range(0, len(rows), group):
            self._try(functools.partial(self._write, rows[start : start + group]))

    def close(self) -> None:
        """Close the file. Safe to call twice; a later use reopens it."""
        with self._lock:
            self._disconnect()

    def _write(self, rows: Sequence[tuple[bytes, bytes]], connection: sqlite3.Connection) -> None:
        with connection:  # commits, or rolls back on any exception
            connection.execute("BEGIN IMMEDIATE")
            self._evict(connection, sum(len(content) + _ROW_BYTES for _, content in rows))
            connection.executemany("INSERT OR REPLACE INTO vectors (key, content) VALUES (?, ?)", rows)
        # Return free pages to the disk only above the limit: it was lowered, or one put was large.
        excess = _pragma(connection, "page_count") - self._max_bytes // _PAGE_BYTES
        if excess > 0:
            # Not `execute`: it takes one step of the statement, which frees one page.
            connection.executescript(f"PRAGMA incremental_vacuum({excess})")

    def _evict(self, connection: sqlite3.Connection, needed_bytes: int) -> None:
        """Delete the oldest rows until `needed_bytes` fit into the limit."""
        limit = self._max_bytes - needed_bytes
        while True:
            pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
            in_use = pages * _PAGE_BYTES
            if in_use <= limit:
                return
            (rows,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
            if not rows:
                return
            limit = max(0, int(self._max_bytes * _KEPT_SHARE) - needed_bytes)
            oldest = max(1, int(rows * (in_use - limit) / in_use))
            connection.execute(
                "DELETE FROM vectors WHERE id IN (SELECT id FROM vectors ORDER BY id LIMIT ?)", (oldest,)
            )

    def _try(self, act: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return the result of `act`, or None if the file fails; delete a damaged file."""
        with self._lock:
            try:
                return act(self._connect())
            except _ERRORS as error:
                if not self._has_warned:
                    self._has_warned = True
                    _log.warning(
                        "%s: the vector cache failed (%s); missing vectors will be computed again.",
                        self._path,
                        error,
                    )
                self._disconnect()
                if _is_damage(error) and _file_id(self._path) == self._opened_file:
                    # The comparison skips a file that another process has already replaced.
                    with contextlib.suppress(OSError):
                        for suffix in ("", "-wal", "-shm"):
                            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        return None

    def _connect(self) -> sqlite3.Connection:
        """Return a connection to the current file, which may have been deleted or replaced."""
        if self._connection is not None and _file_id(self._path) == self._opened_file:
            return self._connection
        self._disconnect()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = bytes  # damage can turn a blob into text that is not UTF-8
        self._connection, self._opened_file = connection, _file_id(self._path)
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            connection.executescript(_CREATE)
        if (_pragma(connection, "application_id"), _pragma(connection, "user_version")) != _FORMAT:
            raise sqlite3.DatabaseError("written by another version or program")
        with contextlib.suppress(sqlite3.OperationalError):
            # Locked while another process connects. Without WAL the cache works too, but waits longer.
            connection.execute("PRAGMA journal_mode=WAL")
        # A power failure can lose the last transactions but must not damage the file.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA journal_size_limit=67108864")
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None


def _is_damage(error: Exception) -> bool:
    """True if the file is damaged. SQLite reports a full disk, missing permissions and locks as operational
    errors; of those, only missing or altered tables (SQLITE_ERROR) mean damage."""
    if isinstance(error, sqlite3.OperationalError):
        return error.sqlite_errorcode == sqlite3.SQLITE_ERROR
    return not isinstance(error, OSError)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _file_id(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _key(space: str, text: str) -> bytes:
    return bytes.fromhex(sha256_text(f"{space}{UNIT_SEPARATOR}{sha256_text(text)}"))


def _vector(key: bytes, row: tuple[object] | None) -> np.ndarray | None:
    """Return the vector of a row, or None if it is missing or damaged."""
    content = row[0] if row else None
    if not isinstance(content, bytes):
        return None
    if content[:_CHECKSUM_BYTES] != _checksum(key, content[_CHECKSUM_BYTES:]):
        return None
    return np.frombuffer(content, dtype=_FLOAT, offset=_CHECKSUM_BYTES)


def _checksum(key: bytes, numbers: bytes) -> bytes:
    """Return a checksum that covers the key too: damage must not give a text the vector of another."""
    return hashlib.blake2b(numbers, digest_size=_CHECKSUM_BYTES, key=key).digest()
