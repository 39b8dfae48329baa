"""The catalogue of every document: what it is, where it lives, when it was seen and when it went."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ingest_assets.intake import schema
from ingest_assets.intake.schema import batches, documents, scan_problems, sources


@dataclass(frozen=True, slots=True)
class Document:
    """One known document; `path` is relative to its source's folder, as the disk spells it."""

    doc_id: str
    source: str
    path: str
    content_hash: str
    size_bytes: int
    mtime_ns: int
    batch: str
    seq: int
    deleted_at: float | None = None

    def is_deleted(self) -> bool:
        return self.deleted_at is not None


@dataclass(frozen=True, slots=True)
class Source:
    """A watched folder."""

    name: str
    path: Path


_COLUMNS = [documents.c[name] for name in Document.__dataclass_fields__]


class Ledger:
    """SQLite in WAL mode: readers never wait for the writer, and a killed writer leaves no half change."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._engine = sa.create_engine(
            sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": 60}
        )
        sa.event.listen(self._engine, "connect", _configure)
        with self.begin() as connection:
            schema.prepare(connection)

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    @contextlib.contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """A transaction that holds the write lock from its start: read, decide and write as one step."""
        with self._engine.begin() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    def sources(self) -> list[Source]:
        """Known folders by name."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(sources.c.name, sources.c.path).order_by(sources.c.name))
            return [Source(row.name, Path(row.path)) for row in rows]

    def put_source(self, name: str, path: Path, now: float) -> None:
        """Add a folder, or change where a known one is; then its documents' rows must say so too."""
        with self.begin() as connection:
            found = connection.execute(sources.update().where(sources.c.name == name).values(path=str(path)))
            if found.rowcount == 0:
                connection.execute(sources.insert().values(name=name, path=str(path), first_seen=now))
            else:
                bump(connection, {d.batch for d in read_documents(connection, source=name)})

    def add_source(self, path: Path, wish: str, now: float) -> Source:
        """The source of a folder: the one that is there, or a new one with a free name like `wish`."""
        with self.begin() as connection:
            known = {
                row.name: row.path for row in connection.execute(sa.select(sources.c.name, sources.c.path))
            }
            for name, known_path in known.items():
                if known_path == str(path):
                    return Source(name, path)
            name, number = wish, 2
            while name in known:
                name, number = f"{wish}-{number}", number + 1
            connection.execute(sources.insert().values(name=name, path=str(path), first_seen=now))
            return Source(name, path)

    def documents(self, *, batch: str | None = None, source: str | None = None) -> list[Document]:
        """Documents in intake order, deleted ones included."""
        with self._engine.connect() as connection:
            return read_documents(connection, batch=batch, source=source)

    def document(self, doc_id: str) -> Document | None:
        """One document by id."""
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(*_COLUMNS).where(documents.c.doc_id == doc_id)).first()
            return None if row is None else Document(*row)

    def batches(self) -> dict[str, int]:
        """Every batch with its revision: a number that grows whenever one of its documents changes."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(batches.c.key, batches.c.revision).order_by(batches.c.key))
            return {row.key: row.revision for row in rows}

    def problems(self) -> list[tuple[str, str, str]]:
        """What the last scan could not take in: source, path, reason."""
        with self._engine.connect() as connection:
            rows = connection.execute(
                sa.select(scan_problems).order_by(scan_problems.c.source, scan_problems.c.path)
            )
            return [(row.source, row.path, row.reason) for row in rows]


def read_documents(
    connection: sa.Connection, *, batch: str | None = None, source: str | None = None
) -> list[Document]:
    """Documents in intake order, deleted ones included."""
    query = sa.select(*_COLUMNS).order_by(documents.c.seq)
    if batch is not None:
        query = query.where(documents.c.batch == batch)
    if source is not None:
        query = query.where(documents.c.source == source)
    return [Document(*row) for row in connection.execute(query)]


def last_seq(connection: sa.Connection) -> int:
    """The highest sequence number given so far."""
    return connection.scalar(sa.select(sa.func.max(documents.c.seq))) or 0


def bump(connection: sa.Connection, keys: Iterable[str]) -> None:
    """Give changed batches a new revision, higher than every one before it."""
    revision = connection.scalar(sa.select(sa.func.max(batches.c.revision))) or 0
    for key in sorted(set(keys)):
        revision += 1
        found = connection.execute(batches.update().where(batches.c.key == key).values(revision=revision))
        if found.rowcount == 0:
            connection.execute(batches.insert().values(key=key, revision=revision))


def replace_problems(connection: sa.Connection, source: str, found: Sequence[tuple[str, str]]) -> None:
    """Forget what the last scan of a source complained about and keep what this one does."""
    connection.execute(scan_problems.delete().where(scan_problems.c.source == source))
    for path, reason in dict(found).items():
        connection.execute(scan_problems.insert().values(source=source, path=path, reason=reason))


def _configure(connection: Any, _record: Any) -> None:
    connection.isolation_level = (
        None  # transactions begin where `Ledger.begin` says, not where sqlite3 guesses
    )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
