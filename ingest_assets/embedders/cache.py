"""Vector cache: one SQLite file of vectors by model and text, so that only new text costs an embedding.

The file may be deleted at any time. Nothing here fails an item: what cannot be read is a miss, what cannot
be written is embedded again later.
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
_BUSY_SECONDS = 5.0  # another writer needs milliseconds
_KEPT_SHARE = 0.9  # of the bound, after an eviction: evictions stay rare
_ROW_BYTES = 160  # of a row beside its content: two copies of the key and the free space of B-trees
_PAGE_BYTES = 8192  # five vectors of 384 numbers fit with little left over
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
# UnicodeDecodeError: an error message of SQLite may quote a damaged name.
_ERRORS = (sqlite3.Error, OSError, UnicodeDecodeError)


@functools.cache
def open_cache(path: Path, max_bytes: int) -> "VectorCache":
    """The cache of this process on that file; threads share it."""
    return VectorCache(path, max_bytes)


class VectorCache:
    """Vectors by model and text, returned bit for bit as they were put; the oldest leave above `max_bytes`.

    Threads share one object, processes share the file. A process must not use a cache that was open when it
    was forked. The first failure is logged, later ones are silent.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path, self._max_bytes = path, max_bytes
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened_file: tuple[int, int] | None = None
        self._has_warned = False

    def get(self, space: str, texts: Sequence[str]) -> list[np.ndarray | None]:
        """The vector of each text, or None. The arrays are read-only."""
        keys = [_key(space, text) for text in texts]

        def read(connection: sqlite3.Connection) -> dict[bytes, np.ndarray | None]:
            select = "SELECT content FROM vectors WHERE key = ?"
            return {key: _vector(key, connection.execute(select, (key,)).fetchone()) for key in set(keys)}

        vectors = self._try(read) or {}
        return [vectors.get(key) for key in keys]

    def put(self, space: str, texts: Sequence[str], vectors: np.ndarray) -> None:
        """Keep one row of `vectors` per text; it replaces what was kept for that text."""
        rows = []
        for text, vector in zip(texts, np.ascontiguousarray(vectors, dtype=_FLOAT), strict=True):
            key, numbers = _key(space, text), vector.tobytes()
            rows.append((key, _checksum(key, numbers) + numbers))
        if not rows:
            return
        # All rows have the same size. A transaction is small beside the bound, so that eviction can hold it.
        row_bytes = len(rows[0][1]) + _ROW_BYTES
        group = max(1, self._max_bytes // 4 // row_bytes)
        for start in range(0, len(rows), group):
            self._try(functools.partial(self._write, rows[start : start + group]))

    def close(self) -> None:
        """May be called twice; a later use opens the file again."""
        with self._lock:
            self._disconnect()

    def _write(self, rows: Sequence[tuple[bytes, bytes]], connection: sqlite3.Connection) -> None:
        with connection:  # commits, or rolls back on any exception
            connection.execute("BEGIN IMMEDIATE")
            self._evict(connection, sum(len(content) + _ROW_BYTES for _, content in rows))
            connection.executemany("INSERT OR REPLACE INTO vectors (key, content) VALUES (?, ?)", rows)
        # Return free pages to the disk only above the bound: the bound was lowered, or one put was large.
        past = _pragma(connection, "page_count") - self._max_bytes // _PAGE_BYTES
        if past > 0:
            # `execute` would take one step of this statement, and each step frees one page.
            connection.executescript(f"PRAGMA incremental_vacuum({past})")

    def _evict(self, connection: sqlite3.Connection, needed_bytes: int) -> None:
        """Delete the oldest rows until `needed_bytes` fit below the bound."""
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
        """The result of `act`, or None when the file fails; a damaged file is deleted."""
        with self._lock:
            try:
                return act(self._connect())
            except _ERRORS as error:
                if not self._has_warned:
                    self._has_warned = True
                    _log.warning(
                        "%s: the vector cache failed (%s); vectors are embedded again where needed.",
                        self._path,
                        error,
                    )
                self._disconnect()
                if _is_damage(error) and _file_id(self._path) == self._opened_file:
                    # Not when another process has replaced the file already.
                    with contextlib.suppress(OSError):
                        for suffix in ("", "-wal", "-shm"):
                            Path(f"{self._path}{suffix}").unlink(missing_ok=True)
        return None

    def _connect(self) -> sqlite3.Connection:
        """A connection to the file that is at the path now: it may be deleted or replaced during a run."""
        if self._connection is not None and _file_id(self._path) == self._opened_file:
            return self._connection
        self._disconnect()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = bytes  # damage may turn a blob into text that is not UTF-8
        self._connection, self._opened_file = connection, _file_id(self._path)
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            connection.executescript(_CREATE)
        if (_pragma(connection, "application_id"), _pragma(connection, "user_version")) != _FORMAT:
            raise sqlite3.DatabaseError("written by another version or program")
        with contextlib.suppress(sqlite3.OperationalError):
            # Locked while another process connects; without WAL all works too, with more waiting.
            connection.execute("PRAGMA journal_mode=WAL")
        # A power cut may lose the last transactions but must not tear the file.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA journal_size_limit=67108864")
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None


def _is_damage(error: Exception) -> bool:
    """True when the file itself is at fault. SQLite reports a full disk, missing rights and locks as
    operational errors; of those, only missing or altered tables (SQLITE_ERROR) are the file's fault."""
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
    """The vector in a row, or None where there is none or it is damaged."""
    content = row[0] if row else None
    if not isinstance(content, bytes):
        return None
    if content[:_CHECKSUM_BYTES] != _checksum(key, content[_CHECKSUM_BYTES:]):
        return None
    return np.frombuffer(content, dtype=_FLOAT, offset=_CHECKSUM_BYTES)


def _checksum(key: bytes, numbers: bytes) -> bytes:
    """Covers the key too: damage must not give one text the vector of another."""
    return hashlib.blake2b(numbers, digest_size=_CHECKSUM_BYTES, key=key).digest()
