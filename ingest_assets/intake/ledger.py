"""The catalogue of every document: what it is, where it lives, when it was seen and when it went."""

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

from ingest_assets.intake import schema
from ingest_assets.intake.database import Database
from ingest_assets.intake.schema import artifacts, batches, documents, scan_problems, sources

Origin = Literal["command", "settings"]


@dataclass(frozen=True, slots=True)
class Document:
    """One known document; `path` is relative to its source's folder, as the disk spells it.

    One that came through the queue has a `resolver`, and its `path` is where it came from.
    """

    doc_id: str
    source: str
    path: str
    content_hash: str
    size_bytes: int
    mtime_ns: int
    batch: str
    seq: int
    deleted_at: float | None = None
    resolver: str | None = None

    def is_deleted(self) -> bool:
        return self.deleted_at is not None


@dataclass(frozen=True, slots=True)
class Source:
    """A watched folder, and who named it: a command, or the settings (which may drop it again)."""

    name: str
    path: Path
    origin: Origin = "command"


class Ledger:
    """Readers never wait for the writer, and a killed writer leaves no half change.

    A path is a SQLite file, a string the URL of a PostgreSQL database. Without either it is empty and in
    memory, for commands that must not leave a trace.
    """

    def __init__(self, where: Path | str | Database | None) -> None:
        self.database = where if isinstance(where, Database) else Database(where)
        with self.database.explained():
            with self.database.connect() as connection:
                version = schema.version_of(connection)
            schema.require_known(version, self.database.where)
            if version != schema.LEDGER_VERSION:
                with self.begin() as connection:
                    schema.prepare(connection, self.database.where)

    def close(self) -> None:
        """Close the connections."""
        self.database.close()

    def begin(self) -> contextlib.AbstractContextManager[sa.Connection]:
        """A transaction of which there is one at a time: read, decide and write as one step."""
        return self.database.begin("ledger")

    def sources(self) -> list[Source]:
        """Known folders by name."""
        with self.database.connect() as connection:
            rows = connection.execute(sa.select(sources).order_by(sources.c.name))
            return [Source(row.name, Path(row.path), row.origin) for row in rows]

    def put_source(self, source: Source, now: float) -> None:
        """Add a folder, or change where a known one is; then its documents' rows must say so too."""
        row = {"path": str(source.path), "origin": source.origin}
        with self.begin() as connection:
            before = connection.scalar(sa.select(sources.c.path).where(sources.c.name == source.name))
            if before is None:
                connection.execute(sources.insert().values(name=source.name, first_seen=now, **row))
                return
            connection.execute(sources.update().where(sources.c.name == source.name).values(**row))
            if before != str(source.path):
                is_here = documents.c.source == source.name
                held_in = connection.scalars(sa.select(documents.c.batch).where(is_here).distinct())
                bump(connection, held_in.all())

    def add_source(self, path: Path, wish: str, now: float) -> Source:
        """The source of a folder: the one that is there, or a new one with a free name like `wish`.

        The name is one that the settings would take, too, so that the folder can be moved there.
        """
        # 64 characters may be stored: there is room for a number.
        wish = re.sub(r"[^A-Za-z0-9._-]+", "-", wish).strip("-._")[:56] or "folder"
        with self.begin() as connection:
            known = {row.name: row for row in connection.execute(sa.select(sources))}
            for row in known.values():
                if row.path == str(path):
                    return Source(row.name, path, row.origin)
            name, number = wish, 2
            while name in known:
                name, number = f"{wish}-{number}", number + 1
            values = {"name": name, "path": str(path), "origin": "command", "first_seen": now}
            connection.execute(sources.insert().values(**values))
            return Source(name, path)

    def documents(self, *, batch: str | None = None, source: str | None = None) -> list[Document]:
        """Documents in intake order, deleted ones included."""
        wanted = {documents.c.batch: batch, documents.c.source: source}
        conditions = [column == value for column, value in wanted.items() if value is not None]
        with self.database.connect() as connection:
            return read_documents(connection, *conditions)

    def document(self, doc_id: str) -> Document | None:
        """One document by id."""
        with self.database.connect() as connection:
            return next(iter(read_documents(connection, documents.c.doc_id == doc_id)), None)

    def batches(self) -> dict[str, int]:
        """Every batch with its revision: a number that grows whenever one of its documents changes."""
        with self.database.connect() as connection:
            rows = connection.execute(sa.select(batches.c.key, batches.c.revision).order_by(batches.c.key))
            return {row.key: row.revision for row in rows}

    def touch(self, keys: Iterable[str]) -> None:
        """Give batches a new revision although none of their documents changed: they must be looked at."""
        with self.begin() as connection:
            bump(connection, keys)

    def complete_mark(self, batch: str) -> str | None:
        """For which state of the world a batch was found complete."""
        with self.database.connect() as connection:
            return connection.scalar(sa.select(batches.c.complete_mark).where(batches.c.key == batch))

    def set_complete_mark(self, batch: str, mark: str) -> None:
        """Remember that a batch is complete for this state of the world."""
        with self.begin() as connection:
            connection.execute(batches.update().where(batches.c.key == batch).values(complete_mark=mark))

    def problems(self) -> list[tuple[str, str, str]]:
        """What the last scan could not take in: source, path, reason."""
        with self.database.connect() as connection:
            rows = connection.execute(
                sa.select(scan_problems).order_by(scan_problems.c.source, scan_problems.c.path)
            )
            return [(row.source, row.path, row.reason) for row in rows]


def read_documents(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Document]:
    """Documents in intake order, deleted ones included."""
    columns = [documents.c[name] for name in Document.__dataclass_fields__]
    query = sa.select(*columns).where(*conditions).order_by(documents.c.seq)
    return [Document(*row) for row in connection.execute(query)]


def last_seq(connection: sa.Connection) -> int:
    """The highest sequence number given so far, also to what is still to be acquired."""
    highest = [sa.select(sa.func.max(column)) for column in (documents.c.seq, artifacts.c.doc_seq)]
    return max(connection.scalar(query) or 0 for query in highest)


def bump(connection: sa.Connection, keys: Iterable[str]) -> None:
    """Give changed batches a new revision, higher than every one before it."""
    revision = connection.scalar(sa.select(sa.func.max(batches.c.revision))) or 0
    for key in sorted(set(keys)):
        revision += 1
        found = connection.execute(batches.update().where(batches.c.key == key).values(revision=revision))
        if found.rowcount == 0:
            connection.execute(batches.insert().values(key=key, revision=revision))
