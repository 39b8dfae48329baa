"""Acquired artifacts as documents: which of them a batch holds, and which only repeat another one's bytes.

Of all that hold the same bytes, watched files and artifacts alike, the one with the lowest sequence number is
the document; further artifacts are `skipped` and name it. So the tables do not depend on who came first. When
a file changes or goes, or an artifact does, those that repeated it are looked at again.
"""

from collections.abc import Iterable, Iterator
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


@dataclass(frozen=True, slots=True)
class _Holder:
    """Somebody with certain bytes, in the order of sequence numbers."""

    doc_id: str
    is_artifact: bool


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
            if _is_of_a_file(connection, before.artifact_id):
                ending, keeps_bytes = Ending("error", failure=_taken(before.artifact_id)), False
            if not end_held(connection, lease.token, ending, now):
                return None
            if not keeps_bytes:
                row = artifacts.c.seq == before.seq
                connection.execute(artifacts.update().where(row).values(content_hash=None))
                _drop_document(connection, before, now)
            hashes = {before.content_hash, ending.content_hash} - {None}
            touched = settle(connection, hashes, now) - {before.batch}  # its own batch runs already
            bump(connection, touched)
            return read_artifacts(connection, Filter(artifact_ids=[before.artifact_id]))[0]


def settle(connection: sa.Connection, hashes: Iterable[str | None], now: float) -> set[str]:
    """Decide again who is the document of these bytes; gives the batches whose documents changed.

    Needs the ledger's lock. Bytes that no artifact holds need no decision: every watched file is a document.
    """
    wanted = sorted({found for found in hashes if found})
    touched: set[str] = set()
    for content_hash in _held_by_artifacts(connection, wanted):
        touched |= _settle_one(connection, content_hash, now)
    return touched


def _held_by_artifacts(connection: sa.Connection, hashes: list[str]) -> Iterator[str]:
    column = artifacts.c.content_hash
    for some in in_groups(hashes):
        yield from connection.scalars(sa.select(column).where(column.in_(some)).distinct()).all()


def _settle_one(connection: sa.Connection, content_hash: str, now: float) -> set[str]:
    holders = _holders(connection, content_hash)
    winner = holders[0].doc_id
    ids = [holder.doc_id for holder in holders if holder.is_artifact]
    touched = set()
    for artifact in read_artifacts(connection, Filter(artifact_ids=ids)):
        is_document = artifact.artifact_id == winner
        _mark(connection, artifact, None if is_document else winner)
        changes = _put_document if is_document else _drop_document
        if changes(connection, artifact, now) and artifact.batch is not None:
            touched.add(artifact.batch)
    return touched


def _holders(connection: sa.Connection, content_hash: str) -> list[_Holder]:
    files = sa.select(documents.c.doc_id, documents.c.seq).where(
        documents.c.content_hash == content_hash,
        documents.c.deleted_at.is_(None),
        documents.c.resolver.is_(None),
    )
    queued = sa.select(artifacts.c.artifact_id, artifacts.c.doc_seq).where(
        artifacts.c.content_hash == content_hash
    )
    found = [(row.seq, row.doc_id, False) for row in connection.execute(files)]
    found += [(row.doc_seq, row.artifact_id, True) for row in connection.execute(queued)]
    return [_Holder(doc_id, is_artifact) for _, doc_id, is_artifact in sorted(found)]


def _mark(connection: sa.Connection, artifact: Artifact, duplicate_of: str | None) -> None:
    """Done or skipped; one that is being looked at again is told when that ends."""
    state = "done" if duplicate_of is None else "skipped"
    if artifact.state in ("done", "skipped") and (artifact.state, artifact.duplicate_of) != (
        state,
        duplicate_of,
    ):
        row = artifacts.c.seq == artifact.seq
        connection.execute(artifacts.update().where(row).values(state=state, duplicate_of=duplicate_of))


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


def _is_of_a_file(connection: sa.Connection, doc_id: str) -> bool:
    is_file = (documents.c.doc_id == doc_id) & documents.c.resolver.is_(None)
    return connection.scalar(sa.select(documents.c.doc_id).where(is_file)) is not None


def _taken(artifact_id: str) -> Failure:
    why = f"{artifact_id} is the id of a file in a watched folder; queue it under another id."
    return Failure("input", "E_ID_TAKEN", why, retryable=False)
