"""Acquired artifacts as documents: which of them a batch holds, and which only repeat another one's bytes.

Of all that hold the same bytes, watched files and artifacts alike, the one with the lowest sequence number is
the document; further artifacts are `skipped` and name it. So the tables do not depend on who came first. When
a file changes or goes, or an artifact does, those that repeated it are looked at again.
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
    """The bytes of an artifact, and what its server said of them."""

    blob: Blob
    mime: str
    etag: str | None = None
    last_modified: str | None = None
    detail: dict[str, object] | None = None


class Catalogue:
    """Ends leases; each call is one transaction, in which the ledger changes wholly or not at all."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def done(self, lease: Lease, found: Acquired, now: float) -> Artifact | None:
        """The artifact with its bytes, done or skipped; None when the lease was lost."""
        ending = Ending(
            "done",
            content_hash=found.blob.content_hash,
            size_bytes=found.blob.size_bytes,
            mime=found.mime,
            etag=found.etag,
            last_modified=found.last_modified,
            detail=found.detail or {},
        )
        return self._end(lease, ending, now)

    def unchanged(
        self, lease: Lease, etag: str | None, last_modified: str | None, now: float
    ) -> Artifact | None:
        """The artifact is still what it was."""
        before = lease.artifact
        ending = Ending("done", etag=etag, last_modified=last_modified, detail=before.detail)
        return self._end(lease, ending, now)

    def gone(self, lease: Lease, failure: Failure, now: float) -> Artifact | None:
        """The artifact is not there any more: an error, and its document leaves the tables."""
        return self._end(lease, Ending("error", failure=failure), now, keeps_bytes=False)

    def _end(self, lease: Lease, ending: Ending, now: float, *, keeps_bytes: bool = True) -> Artifact | None:
        before = lease.artifact
        with self._ledger.begin() as connection:
            is_file = (documents.c.doc_id == before.artifact_id) & documents.c.resolver.is_(None)
            if connection.scalar(sa.select(documents.c.doc_id).where(is_file)) is not None:
                taken = f"{before.artifact_id} is the id of a file in a watched folder"
                why = f"{taken}; queue it under another id."
                ending = Ending("error", failure=Failure("input", "E_ID_TAKEN", why, retryable=False))
                keeps_bytes = False
            if not end_held(connection, lease.token, ending, now):
                return None
            if not keeps_bytes:
                row = artifacts.c.seq == before.seq
                connection.execute(artifacts.update().where(row).values(content_hash=None))
                _drop_document(connection, before, now)
            hashes = (before.content_hash, ending.content_hash)
            touched = settle(connection, hashes, now) - {before.batch}  # its own batch runs already
            bump(connection, touched)
            return read_artifacts(connection, Filter(artifact_ids=[before.artifact_id]))[0]


def settle(connection: sa.Connection, hashes: Iterable[str | None], now: float) -> set[str]:
    """Decide again who is the document of these bytes; gives the batches whose documents changed.

    Needs the ledger's lock. Bytes that no artifact holds need no decision: every watched file is a document.
    """
    touched: set[str] = set()
    column = artifacts.c.content_hash
    for some in in_groups(hashes):
        held = sa.select(column).where(column.in_(some)).distinct()
        for content_hash in connection.scalars(held).all():
            touched |= _settle_one(connection, content_hash, now)
    return touched


def _settle_one(connection: sa.Connection, content_hash: str, now: float) -> set[str]:
    """The holder with the lowest sequence number is the document, all other artifacts name it."""
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
        stands = ("done", None) if is_document else ("skipped", winner)
        # One that is being looked at again is told when that ends.
        if artifact.state in ("done", "skipped") and (artifact.state, artifact.duplicate_of) != stands:
            row = artifacts.update().where(artifacts.c.seq == artifact.seq)
            connection.execute(row.values(state=stands[0], duplicate_of=stands[1]))
        changes = _put_document if is_document else _drop_document
        if changes(connection, artifact, now) and artifact.batch is not None:
            touched.add(artifact.batch)
    return touched


def _put_document(connection: sa.Connection, artifact: Artifact, now: float) -> bool:
    """Make the artifact a living document with its bytes; False when it is one already."""
    row = connection.execute(sa.select(documents).where(documents.c.doc_id == artifact.artifact_id)).first()
    if row is not None and row.deleted_at is None and row.content_hash == artifact.content_hash:
        return False
    facts = {"content_hash": artifact.content_hash, "size_bytes": artifact.size_bytes, "last_seen": now}
    if row is not None:
        here = documents.c.doc_id == artifact.artifact_id
        connection.execute(documents.update().where(here).values(**facts, deleted_at=None))
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
            **facts,
        )
    )
    return True


def _drop_document(connection: sa.Connection, artifact: Artifact, now: float) -> bool:
    """Let its rows leave the tables; False when it is no document, or not any more."""
    is_its_own = (documents.c.doc_id == artifact.artifact_id) & documents.c.resolver.is_not(None)
    living = is_its_own & documents.c.deleted_at.is_(None)
    return connection.execute(documents.update().where(living).values(deleted_at=now)).rowcount == 1
