"""The ledger's database: a SQLite file in WAL mode, or PostgreSQL by URL, with the same transactions."""

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ingest_assets.core.errors import ConfigError, IngestError

Lock = Literal["ledger", "enqueue", "lease"]

_POSTGRES = "postgresql+psycopg"
_POSTGRES_SCHEMES = {"postgres", "postgresql", _POSTGRES}
_WAIT_FOR_WRITER_SECONDS = 60  # SQLite allows one writer, and the scan of a large folder writes for a while
# SQLite built before 3.32 takes at most 999 values in one statement.
_VALUES_PER_QUERY = 500
_ENVIRONMENT_CODES = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}
# Advisory locks are numbers shared by all users of a database: first the application, then the lock.
_LOCK_SPACE = 0x1A6E57
_LOCKS: dict[Lock, int] = {"ledger": 1, "enqueue": 2, "lease": 3}


class Database:
    """Connections and transactions. A path is a SQLite file, a string a URL, None an empty one in memory.

    Messages name the original, `copy_of`, for a copy. `read_only` is for PostgreSQL: every connection sees
    one snapshot of all tables.
    """

    def __init__(
        self, where: Path | str | None, *, copy_of: Path | str | None = None, read_only: bool = False
    ) -> None:
        original = where if copy_of is None else copy_of
        # For messages, so a password in a URL is hidden.
        self.where = (
            _postgres_url(original).render_as_string(hide_password=True)
            if isinstance(original, str)
            else str(original)
        )
        self.is_postgres = isinstance(where, str)
        if isinstance(where, str):
            self._engine = _postgres_engine(_postgres_url(where), read_only)
        else:
            self._engine = _sqlite_engine(where, is_copy=copy_of is not None)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def connect(self) -> contextlib.AbstractContextManager[sa.Connection]:
        """Return a connection for reading."""
        return self._engine.connect()

    @contextlib.contextmanager
    def begin(self, lock: Lock | None = None) -> Iterator[sa.Connection]:
        """Open a transaction for writing; two transactions with the same lock exclude each other.

        SQLite allows one writer at a time, with or without a lock. On PostgreSQL, writers without a lock rely
        on row locks.
        """
        with self.explained(only_environment=True), self._engine.begin() as connection:
            if not self.is_postgres:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            elif lock is not None:
                # A separate statement, so that those that follow see all that the last holder committed.
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_SPACE, _LOCKS[lock])))
            yield connection

    def insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """Return an insert with `on_conflict_…` for rows that already exist."""
        return postgresql.insert(table) if self.is_postgres else sqlite.insert(table)

    @contextlib.contextmanager
    def explained(self, *, only_environment: bool = False) -> Iterator[None]:
        """Convert database errors to an `IngestError` of one line."""
        try:
            yield
        except sa.exc.DatabaseError as error:
            is_environment = _is_environment_error(error)
            if only_environment and not is_environment:
                raise
            advice = "check its permissions and the disk" if is_environment else "restore it from a backup"
            if self.is_postgres:
                advice = "check its address, its permissions and that the server runs"
            reason = " ".join(str(error.orig).split())
            raise IngestError(f"{self.where}: cannot be used as the ledger ({reason}); {advice}.") from None


def _is_environment_error(error: sa.exc.DatabaseError) -> bool:
    """True for a read-only ledger, a full disk or a lost server. For SQLite the error code decides, because
    faulty SQL raises the same class."""
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _ENVIRONMENT_CODES
    return isinstance(error, sa.exc.OperationalError)


def in_groups(values: Iterable[str | None]) -> Iterator[list[str]]:
    """Yield the distinct values in sorted groups that fit into one query, without None."""
    distinct = sorted({value for value in values if value is not None})
    for start in range(0, len(distinct), _VALUES_PER_QUERY):
        yield distinct[start : start + _VALUES_PER_QUERY]


def _postgres_url(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise ConfigError("ledger: not a URL; give postgresql://USER:PASSWORD@HOST/DATABASE.") from None
    if url.drivername not in _POSTGRES_SCHEMES:
        raise ConfigError(f"ledger: {url.drivername!r} is not supported; give a postgresql:// URL.")
    return url.set(drivername=_POSTGRES)


def _sqlite_engine(path: Path | None, *, is_copy: bool) -> sa.Engine:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    url = sa.URL.create("sqlite", database=None if path is None else str(path))
    if is_copy:  # one connection, which needs no other file and keeps working after the file is unlinked
        engine = sa.create_engine(url, poolclass=sa.StaticPool)
        pragmas = ("synchronous=OFF", "journal_mode=MEMORY")
    else:
        engine = sa.create_engine(url, connect_args={"timeout": _WAIT_FOR_WRITER_SECONDS})
        pragmas = ("journal_mode=WAL", "synchronous=FULL")

    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        # Transactions begin in `Database.begin`, not where sqlite3 guesses.
        connection.isolation_level = None
        for pragma in pragmas:
            _set_pragma(connection, pragma)

    return engine


def _set_pragma(connection: sqlite3.Connection, pragma: str) -> None:
    """Set a pragma, waiting for other processes.

    SQLite's own time limit does not cover the switch of a new file to WAL: of two processes that open it at
    the same moment, one gets "database is locked" at once.
    """
    deadline = time.monotonic() + _WAIT_FOR_WRITER_SECONDS
    while True:
        try:
            connection.execute(f"PRAGMA {pragma}")
            return
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _postgres_engine(url: sa.URL, read_only: bool) -> sa.Engine:
    snapshot = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    try:
        return sa.create_engine(url, pool_pre_ping=True, execution_options=snapshot if read_only else {})
    except ModuleNotFoundError:
        raise ConfigError(
            "ledger: PostgreSQL needs the driver psycopg; install it: pip install 'ingest-assets[postgres]'."
        ) from None
