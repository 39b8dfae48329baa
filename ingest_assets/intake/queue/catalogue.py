"""Enter acquired artifacts in the ledger: which are documents, and which repeat the bytes of another.

Of watched files and artifacts with the same bytes, the one with the lowest sequence number is the document;
the other artifacts are `skipped` and name it. So tables do not depend on the order of acquisition. When a
file or an artifact changes or disappears, its duplicates are re-evaluated.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from ingest_assets.core.items import Blob
from ingest_assets.intake.database import in_groups
from ingest_assets.intake.ledger import Ledger, bump
from ingest_assets.intake.queue.artifacts import Artifact, Ending, Failure, Lease
from ingest_assets.intake.queue.queue import Filter, end_held, read_artifacts
from ingest_assets.intake.schema import artifacts, documents

SOURCE = "queue"


@dataclass(frozen=True, slots=True)
class Acquired:
    """The stored bytes of an artifact, and what the server said about them."""

    blob: Blob
    mime: str
    etag: str | None = None
    last_modified: str | None = None
    detail: dict[str, object] | None = None


class Catalogue:
    """Ends leases and enters documents; each call is one transaction."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def done(self, lease: Lease, acquired: Acquired, now: float) -> Artifact | None:
        """Store the new bytes and return the artifact, done or skipped; None if the lease was lost."""
        ending = Ending(
            "done",
            content_hash=acquired.blob.content_hash,
            size_bytes=acquired.blob.size_bytes,
            mime=acquired.mime,
            etag=acquired.etag,
            last_modified=acquired.last_modified,
            detail=acquired.detail or {},
        )
        return self._end(lease, ending, now)

    def unchanged(
        self, lease: Lease, etag: str | None, last_modified: str | None, now: float
    ) -> Artifact | None:
        """Record that the bytes have not changed; None if the lease was lost."""
        before = lease.artifact
        ending = Ending("done", etag=etag, last_modified=last_modified, detail=before.detail)
        return self._end(lease, ending, now)

    def gone(self, lease: Lease, failure: Failure, now: float) -> Artifact | None:
        """Record that the artifact no longer exists: an error, and its document leaves the tables."""
        return self._end(lease, Ending("error", failure=failure), now, keeps_bytes=False)

    def _end(self, lease: Lease, ending: Ending, now: float, *, keeps_bytes: bool = True) -> Artifact | None:
        before = lease.artifact
        with self._ledger.begin() as connection:
            is_file = (documents.c.doc_id == before.artifact_id) & documents.c.resolver.is_(None)
            if connection.scalar(sa.select(documents.c.doc_id).where(is_file)) is not None:
                fault = f"{before.artifact_id} is the id of a file in a watched folder"
                message = f"{fault}; queue it under another id."
                ending = Ending("error", failure=Failure("input", "E_ID_TAKEN", message, retryable=False))
                keeps_bytes = False
            if not end_held(connection, lease.token, ending, now):
                return None
            if not keeps_bytes:
                row = artifacts.c.seq == before.seq
                connection.execute(artifacts.update().where(row).values(content_hash=None))
                _drop_document(connection, before, now)
            hashes = (before.content_hash, ending.content_hash)
            touched = update_duplicates(connection, hashes, now) - {before.batch}  # its own batch is running
            bump(connection, touched)
            return read_artifacts(connection, Filter(artifact_ids=[before.artifact_id]))[0]


def update_duplicates(connection: sa.Connection, hashes: Iterable[str | None], now: float) -> set[str]:
    """Decide again which holder of the same bytes is the document; return the batches that changed.

    Needs the ledger's lock. Bytes without an artifact need no decision: every watched file is a document.
    """
    touched: set[str] = set()
    column = artifacts.c.content_hash
    for group in in_groups(hashes):
        held = sa.select(column).where(column.in_(group)).distinct()
        for content_hash in connection.scalars(held).all():
            touched |= _update_holders(connection, content_hash, now)
    return touched


def _update_holders(connection: sa.Connection, content_hash: str, now: float) -> set[str]:
    """Make the holder with the lowest sequence number the document; the other artifacts refer to it."""
    files = sa.select(documents.c.seq, documents.c.doc_id).where(
        documents.c.content_hash == content_hash,
        documents.c.deleted_at.is_(None),
        documents.c.resolver.is_(None),
    )
    queued = sa.select(artifacts.c.doc_seq, artifacts.c.artifact_id).where(
        artifacts.c.content_hash == content_hash
    )
    acquired = [(seq, doc_id) for seq, doc_id in connection.execute(queued)]
    _, winner = min([*acquired, *((seq, doc_id) for seq, doc_id in connection.execute(files))])
    touched = set()
    ids = [artifact_id for _, artifact_id in acquired]
    for artifact in read_artifacts(connection, Filter(artifact_ids=ids)):
        is_document = artifact.artifact_id == winner
        state, duplicate_of = ("done", None) if is_document else ("skipped", winner)
        # An artifact in refresh is updated when its refresh ends.
        is_ended, current = artifact.state in ("done", "skipped"), (artifact.state, artifact.duplicate_of)
        if is_ended and current != (state, duplicate_of):
            row = artifacts.update().where(artifacts.c.seq == artifact.seq)
            connection.execute(row.values(state=state, duplicate_of=duplicate_of))
        changes = _put_document if is_document else _drop_document
        if changes(connection, artifact, now) and artifact.batch is not None:
            touched.add(artifact.batch)
    return touched


def _put_document(connection: sa.Connection, artifact: Artifact, now: float) -> bool:
    """Make the artifact a document with its bytes; False if it already is."""
    row = connection.execute(sa.select(documents).where(documents.c.doc_id == artifact.artifact_id)).first()
    if row is not None and row.deleted_at is None and row.content_hash == artifact.content_hash:
        return False
    columns = {"content_hash": artifact.content_hash, "size_bytes": artifact.size_bytes, "last_seen": now}
    if row is not None:
        is_document = documents.c.doc_id == artifact.artifact_id
        connection.execute(documents.update().where(is_document).values(**columns, deleted_at=None))
        return True
    connection.execute(
        documents.insert().values(
            doc_id=artifact.artifact_id,
            source=SOURCE,
            resolver=artifact.resolver,
            path=artifact.origin,
            mtime_ns=0,
            batch=artifact.batch,
            seq=artifact.doc_seq,
            first_seen=now,
            **columns,
        )
    )
    return True


def _drop_document(connection: sa.Connection, artifact: Artifact, now: float) -> bool:
    """Delete the artifact's document, so that its rows are removed; False if there is none."""
    is_document = (documents.c.doc_id == artifact.artifact_id) & documents.c.resolver.is_not(None)
    living = is_document & documents.c.deleted_at.is_(None)
    return connection.execute(documents.update().where(living).values(deleted_at=now)).rowcount == 1
