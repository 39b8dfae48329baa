"""The ledger: the catalogue of every document, with its path, hash, batch and times."""

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

Origin = Literal["command", "settings", "removed"]


@dataclass(frozen=True, slots=True)
class Document:
    """A document. `path` is relative to the source's folder, in the file system's spelling.

    A document from the queue has a `resolver`, and its `path` is the URL or file it came from.
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
    """A watched folder: added by a command or the settings (`origin`), or removed by a command."""

    name: str
    path: Path
    origin: Origin = "command"


class Ledger:
    """Readers never wait for the writer, and a killed writer leaves no partial change.

    A path is a SQLite file, a string the URL of a PostgreSQL database. None is an empty ledger in memory, for
    commands that must not write anything.
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
        """Open the exclusive transaction: read, decide and write in one step."""
        return self.database.begin("ledger")

    def sources(self) -> list[Source]:
        """Return all folders, ordered by name."""
        with self.database.connect() as connection:
            rows = connection.execute(sa.select(sources).order_by(sources.c.name))
            return [Source(row.name, Path(row.path), row.origin) for row in rows]

    def put_source(self, source: Source, now: float) -> None:
        """Add a folder, or change its path; a changed path gives its batches a new revision."""
        row = {"path": str(source.path), "origin": source.origin}
        with self.begin() as connection:
            before = connection.scalar(sa.select(sources.c.path).where(sources.c.name == source.name))
            if before is None:
                connection.execute(sources.insert().values(name=source.name, first_seen=now, **row))
                return
            connection.execute(sources.update().where(sources.c.name == source.name).values(**row))
            if before != str(source.path):
                is_member = documents.c.source == source.name
                keys = connection.scalars(sa.select(documents.c.batch).where(is_member).distinct())
                bump(connection, keys.all())

    def add_source(self, path: Path, stem: str, now: float) -> Source:
        """Return the source of a folder; if it is new, add it under a free name that starts with `stem`.

        The name is also valid in the settings, so that the folder can be moved there.
        """
        # A name has at most 64 characters; this leaves room for a number.
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-._")[:56] or "folder"
        with self.begin() as connection:
            known = {row.name: row for row in connection.execute(sa.select(sources))}
            for row in known.values():
                if row.path == str(path):
                    return Source(row.name, path, row.origin)
            name, number = stem, 2
            while name in known:
                name, number = f"{stem}-{number}", number + 1
            values = {"name": name, "path": str(path), "origin": "command", "first_seen": now}
            connection.execute(sources.insert().values(**values))
            return Source(name, path)

    def documents(self, *, batch: str | None = None, source: str | None = None) -> list[Document]:
        """Return documents in intake order, including deleted ones."""
        values = {documents.c.batch: batch, documents.c.source: source}
        conditions = [column == value for column, value in values.items() if value is not None]
        with self.database.connect() as connection:
            return read_documents(connection, *conditions)

    def document(self, doc_id: str) -> Document | None:
        """Return the document with this id, or None."""
        with self.database.connect() as connection:
            return next(iter(read_documents(connection, documents.c.doc_id == doc_id)), None)

    def batches(self) -> dict[str, int]:
        """Return every batch with its revision, a number that grows when one of its documents changes."""
        with self.database.connect() as connection:
            rows = connection.execute(sa.select(batches.c.key, batches.c.revision).order_by(batches.c.key))
            return {row.key: row.revision for row in rows}

    def touch(self, keys: Iterable[str]) -> None:
        """Give batches a new revision although none of their documents changed, so that they run again."""
        with self.begin() as connection:
            bump(connection, keys)

    def complete_fingerprint(self, batch: str) -> str | None:
        """Return the fingerprint of the state in which a batch was found complete, or None."""
        with self.database.connect() as connection:
            return connection.scalar(sa.select(batches.c.complete_mark).where(batches.c.key == batch))

    def set_complete_fingerprint(self, batch: str, state: str) -> None:
        """Store the fingerprint of a state in which a batch is complete."""
        with self.begin() as connection:
            connection.execute(batches.update().where(batches.c.key == batch).values(complete_mark=state))

    def problems(self) -> list[tuple[str, str, str]]:
        """Return what the last scan could not read: source, path, reason."""
        with self.database.connect() as connection:
            rows = connection.execute(
                sa.select(scan_problems).order_by(scan_problems.c.source, scan_problems.c.path)
            )
            return [(row.source, row.path, row.reason) for row in rows]


def read_documents(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Document]:
    """Return documents in intake order, including deleted ones."""
    columns = [documents.c[name] for name in Document.__dataclass_fields__]
    query = sa.select(*columns).where(*conditions).order_by(documents.c.seq)
    return [Document(*row) for row in connection.execute(query)]


def last_seq(connection: sa.Connection) -> int:
    """Return the highest sequence number assigned so far, including artifacts not acquired yet."""
    highest = [sa.select(sa.func.max(column)) for column in (documents.c.seq, artifacts.c.doc_seq)]
    return max(connection.scalar(query) or 0 for query in highest)


def bump(connection: sa.Connection, keys: Iterable[str]) -> None:
    """Give changed batches a new revision, higher than all before."""
    revision = connection.scalar(sa.select(sa.func.max(batches.c.revision))) or 0
    for key in sorted(set(keys)):
        revision += 1
        updated = connection.execute(batches.update().where(batches.c.key == key).values(revision=revision))
        if updated.rowcount == 0:
            connection.execute(batches.insert().values(key=key, revision=revision))
