"""The SQLite file behind the vector cache: rows by key, a clock that orders their use, and a bound."""

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

_APPLICATION = 0x1A6E5743
_VERSION = 1
_PAGE_BYTES = 8192  # five vectors of 384 numbers, with little left over
_KEYS_PER_QUERY = 500
_KEPT_SHARE = 0.9  # what eviction leaves, so that it is rare
_ENTRY_BYTES = 160  # of a row beside its content, with the room that trees leave empty
_MOST_TICKS = 2**62 - 1  # damage may set the clock to anything; numbers past 63 bits are none to SQLite
_SCHEMA = """
CREATE TABLE entries (key BLOB PRIMARY KEY, id INTEGER NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE vectors (id INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE clock (tick INTEGER NOT NULL);
INSERT INTO clock VALUES (0);
"""
# The last when a message of SQLite's quotes what damage has made of a name.
FAULTS = (sqlite3.Error, OSError, UnicodeDecodeError)
_DAMAGE = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_ERROR,  # tables are not as they were made
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_TOOBIG,
}


class VectorFile:
    """An open file. Not for several threads at once, and not across a fork; processes may share the path.

    What keys were used last is in a small table of its own: noting a use rewrites no vector.
    """

    def __init__(self, path: Path, max_bytes: int, wait_seconds: float) -> None:
        self._path = path
        self._max_bytes = max_bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path):
            if not path.exists():
                _remove_logs(path)  # whoever still has a deleted file open shares nothing with the new one
            self._connection = _opened(path, wait_seconds)
            self._opened_file = _file_identity(path)

    def is_in_place(self) -> bool:
        """False when the file was deleted or another has taken its place: what is written here is lost."""
        return _file_identity(self._path) == self._opened_file

    def close(self) -> None:
        self._connection.close()

    def put_aside(self) -> None:
        """Close, and move the file out of the way unless somebody else has done so already."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        with _alone(self._path):
            if self.is_in_place():
                _move_away(self._path)

    def read(self, keys: Sequence[bytes]) -> dict[bytes, object]:
        """What is stored under the keys that are there; damage may have made anything of it."""
        found: dict[bytes, object] = {}
        for group in _groups(keys):
            marks = ",".join("?" * len(group))
            found.update(
                self._connection.execute(
                    f"SELECT key, content FROM entries JOIN vectors USING (id) WHERE key IN ({marks})", group
                )
            )
        return found

    def write(self, rows: Sequence[tuple[bytes, bytes]], used: Sequence[bytes]) -> None:
        """Note what was used since, oldest first, then store rows; the least recently used make room."""
        with self._transaction():
            first = self._ticks(len(used))
            self._connection.executemany(
                "UPDATE entries SET used = ? WHERE key = ?", enumerate(used, start=first)
            )
            self._make_room(sum(len(content) + _ENTRY_BYTES for _, content in rows))
            self._insert(rows)
        self._shrink()

    def remove(self, keys: Sequence[bytes]) -> None:
        with self._transaction():
            self._remove(keys)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _insert(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        first = self._ticks(len(rows))
        self._remove([key for key, _ in rows])
        ticks = range(first, first + len(rows))
        self._connection.executemany(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
            zip(ticks, (content for _, content in rows), strict=True),
        )
        self._connection.executemany(
            "INSERT OR REPLACE INTO entries VALUES (?1, ?2, ?2)",
            zip((key for key, _ in rows), ticks, strict=True),
        )

    def _remove(self, keys: Sequence[bytes]) -> None:
        single = [(key,) for key in keys]
        self._connection.executemany(
            "DELETE FROM vectors WHERE id IN (SELECT id FROM entries WHERE key = ?)", single
        )
        self._connection.executemany("DELETE FROM entries WHERE key = ?", single)

    def _ticks(self, number: int) -> int:
        """So many numbers that nobody had before; the first of them."""
        advance = f"UPDATE clock SET tick = (CAST(tick AS INTEGER) & {_MOST_TICKS}) + ? RETURNING tick"
        rows = self._connection.execute(advance, (number,)).fetchall()
        if len(rows) != 1:
            raise _unusable("its clock is gone")
        return int(rows[0][0]) - number + 1

    def _make_room(self, wanted_bytes: int) -> None:
        if self._bytes_in_use() + wanted_bytes <= self._max_bytes:
            return
        goal = max(0, int(self._max_bytes * _KEPT_SHARE) - wanted_bytes)
        while (excess := self._bytes_in_use() - goal) > 0:
            (rows,) = self._connection.execute("SELECT count(*) FROM entries").fetchone()
            if not rows:
                return
            share = min(1.0, excess / self._bytes_in_use())
            oldest = self._connection.execute(
                "SELECT key FROM entries ORDER BY used LIMIT ?", (max(1, int(rows * share)),)
            )
            self._remove([key for (key,) in oldest.fetchall()])

    def _bytes_in_use(self) -> int:
        return (self._pragma("page_count") - self._pragma("freelist_count")) * _PAGE_BYTES

    def _shrink(self) -> None:
        """Give back what is past the bound: it was lowered, or one put was large."""
        past = self._pragma("page_count") - self._max_bytes // _PAGE_BYTES
        spare = min(past, self._pragma("freelist_count"))
        if spare > 0:
            # As a script: `execute` would take one step, and each step gives one page back.
            self._connection.executescript(f"PRAGMA incremental_vacuum({spare})")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])


def is_damage(error: Exception) -> bool:
    """True when the file itself is at fault, and not the disk, the rights or another writer."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, UnicodeDecodeError) or (code is not None and (code & 0xFF) in _DAMAGE)


def _opened(path: Path, wait_seconds: float) -> sqlite3.Connection:
    try:
        return _connected(path, wait_seconds)
    except FAULTS as error:
        if not is_damage(error):
            raise
        _move_away(path)
        return _connected(path, wait_seconds)


def _connected(path: Path, wait_seconds: float) -> sqlite3.Connection:
    """Made if it is not there. Transactions begin where this module says."""
    connection = sqlite3.connect(path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)
    connection.text_factory = bytes  # damage may make text of anything, and not even text
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            _create(connection)
        made_by = tuple(
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if made_by != (_APPLICATION, _VERSION):
            raise _unusable("made by another version or program")
        connection.execute("SELECT 1 FROM entries JOIN vectors USING (id), clock LIMIT 1").fetchall()
        # Losing the last moments before a power cut is nothing to a cache; a torn file would be.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA journal_size_limit=67108864")
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")
    connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.executescript(
        f"BEGIN; {_SCHEMA} PRAGMA application_id={_APPLICATION}; PRAGMA user_version={_VERSION}; COMMIT;"
    )


def _unusable(reason: str) -> sqlite3.Error:
    error = sqlite3.DatabaseError(reason)
    error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
    return error


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """No other process makes, opens or moves the file meanwhile."""
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _file_identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _move_away(path: Path) -> None:
    """Keep one damaged file for whoever wants to know; its log holds nothing without it."""
    _remove_logs(path)
    with contextlib.suppress(FileNotFoundError):
        path.replace(path.with_name(path.name + ".damaged"))


def _remove_logs(path: Path) -> None:
    """The files beside it, which SQLite finds by name."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _groups(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(keys), _KEYS_PER_QUERY):
        yield keys[start : start + _KEYS_PER_QUERY]
