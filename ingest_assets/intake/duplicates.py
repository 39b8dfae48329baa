"""Duplicate claims: which of several equal or near-equal documents counts."""

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from ingest_assets.core.ports import Claim, DuplicateStatus, SimilarityRule
from ingest_assets.intake.database import in_groups
from ingest_assets.intake.ledger import Ledger, bump
from ingest_assets.intake.schema import bands, claims

_Winners = dict[str | None, tuple[int, str]]
# The columns by which claims are compared; the bands follow from them.
_STORED = ("doc_id", "batch", "seq", "basis", "text_hash", "is_eligible", "signature")


class Claims:
    """The claims of a ledger. `replace` is one transaction; several batches can call it at the same time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def of(self, batch: str) -> dict[str, DuplicateStatus]:
        """Return the duplicate status of each document of a batch."""
        with self._ledger.database.connect() as connection:
            rows = connection.execute(sa.select(claims).where(claims.c.batch == batch)).all()
            winners = _winners(connection, {row.text_hash for row in rows})
        return {
            row.doc_id: DuplicateStatus(
                fingerprint=row.basis,
                duplicate_of=_original(row, winners.get(row.text_hash)),
                near_duplicate_of=row.near_of,
                similarity=row.similarity,
                is_eligible=row.is_eligible,
            )
            for row in rows
        }

    def replace(self, batch: str, new: Sequence[Claim], rule: SimilarityRule | None = None) -> set[str]:
        """Replace the claims of a batch; return the other batches in which a document's status changed.

        These get a new revision, because they must run again. With `rule`, near duplicates are decided too.
        """
        with self._ledger.begin() as connection:
            touched = _replace(connection, batch, new, rule) - {batch}
            bump(connection, touched)
        return touched


def _replace(
    connection: sa.Connection, batch: str, new: Sequence[Claim], rule: SimilarityRule | None
) -> set[str]:
    """Replace a batch's claims; return the batches of documents whose duplicate status changed."""
    stored = connection.execute(
        sa.select(*(claims.c[name] for name in _STORED)).where(claims.c.batch == batch)
    )
    before = {row["doc_id"]: dict(row) for row in stored.mappings()}
    after = {claim.doc_id: _stored_row(claim, batch) for claim in new}
    changed = {doc_id for doc_id in {*before, *after} if before.get(doc_id) != after.get(doc_id)}
    texts = {rows[doc_id]["text_hash"] for rows in (before, after) for doc_id in changed & rows.keys()}
    old_winners, affected = _winners(connection, texts), changed | neighbours(connection, changed)
    for group in in_groups(changed):  # by id, since a document may have been in another batch before
        connection.execute(bands.delete().where(bands.c.doc_id.in_(group)))
        connection.execute(claims.delete().where(claims.c.doc_id.in_(group)))
    if rows := [row for doc_id, row in after.items() if doc_id in changed]:
        connection.execute(claims.insert(), rows)
    changes = [claim for claim in new if claim.doc_id in changed]
    if new_bands := [{"band": band, "doc_id": claim.doc_id} for claim in changes for band in claim.bands]:
        connection.execute(bands.insert(), new_bands)
    winners, touched = _winners(connection, texts), set[str]()
    columns = (claims.c.doc_id, claims.c.batch, claims.c.seq, claims.c.text_hash)
    for group in in_groups(texts):
        for row in connection.execute(sa.select(*columns).where(claims.c.text_hash.in_(group))):
            affected.add(row.doc_id)
            if _original(row, old_winners.get(row.text_hash)) != _original(row, winners.get(row.text_hash)):
                touched.add(row.batch)
    return touched | update_near_duplicates(connection, affected, rule)


def _stored_row(claim: Claim, batch: str) -> dict[str, Any]:
    fields = (claim.doc_id, batch, claim.seq, claim.fingerprint, claim.text_hash)
    return dict(zip(_STORED, (*fields, claim.is_eligible, claim.signature), strict=True))


def _winners(connection: sa.Connection, texts: Iterable[str | None]) -> _Winners:
    """Return the eligible document with the lowest sequence number, for each text that has one."""
    winners: _Winners = {}
    for group in in_groups(texts):
        is_eligible = claims.c.text_hash.in_(group) & claims.c.is_eligible
        first = sa.select(claims.c.text_hash, sa.func.min(claims.c.seq).label("seq")).where(is_eligible)
        firsts = first.group_by(claims.c.text_hash).subquery()
        is_first = (claims.c.text_hash == firsts.c.text_hash) & (claims.c.seq == firsts.c.seq)
        rows = connection.execute(
            sa.select(claims.c.text_hash, claims.c.seq, claims.c.doc_id).join(firsts, is_first)
        )
        winners |= {text: (seq, doc_id) for text, seq, doc_id in rows}
    return winners


def _original(row: Any, winner: tuple[int, str] | None) -> str | None:
    return winner[1] if winner is not None and winner[0] < row.seq else None


# Near duplicates: of similar documents, the one with the lowest sequence number is kept.
#
# A document is compared only with earlier documents that are kept, so a chain of small changes keeps its
# start. Decisions follow the sequence numbers, so the result does not depend on the order of runs.


def neighbours(connection: sa.Connection, doc_ids: Iterable[str]) -> set[str]:
    """Return the documents that share a band with one of these."""
    base, other = bands.alias("base"), bands.alias("other")
    pairs = sa.select(other.c.doc_id).join(base, base.c.band == other.c.band).distinct()
    ids = set[str]()
    for group in in_groups(doc_ids):
        ids |= set(connection.scalars(pairs.where(base.c.doc_id.in_(group))))
    return ids


def update_near_duplicates(
    connection: sa.Connection, doc_ids: Iterable[str], rule: SimilarityRule | None
) -> set[str]:
    """Decide these documents again, and all that depend on them; return the batches in which one changed.
    Without `rule`, no document is a near duplicate."""
    rows = _read(connection, doc_ids)
    if rule is None:
        return {row.batch for row in rows if row.near_of is not None and _decide(connection, row, [], None)}
    pending = [(row.seq, row.doc_id) for row in rows]
    heapq.heapify(pending)
    done, touched = set[str](), set[str]()
    while pending:
        _, doc_id = heapq.heappop(pending)
        if doc_id in done:
            continue
        done.add(doc_id)
        (row,) = _read(connection, [doc_id])
        candidates = _read(connection, neighbours(connection, [doc_id]) - {doc_id})
        if _decide(connection, row, candidates, rule):
            touched.add(row.batch)
        for other in candidates:
            if other.seq > row.seq and other.doc_id not in done:
                heapq.heappush(pending, (other.seq, other.doc_id))
    return touched


def _decide(connection: sa.Connection, row: Any, candidates: list[Any], rule: SimilarityRule | None) -> bool:
    """Store of which document this is a near duplicate; True if that changed."""
    near_of, similarity = None, None
    if rule is not None and _is_comparable(connection, row):
        for other in sorted((c for c in candidates if c.seq < row.seq), key=lambda other: other.seq):
            value = rule.similarity(row.signature, other.signature)
            if value >= rule.threshold and other.near_of is None and _is_comparable(connection, other):
                near_of, similarity = other.doc_id, value
                break
    if (near_of, similarity) == (row.near_of, row.similarity):
        return False
    update = claims.update().where(claims.c.doc_id == row.doc_id)
    connection.execute(update.values(near_of=near_of, similarity=similarity))
    return True


def _is_comparable(connection: sa.Connection, row: Any) -> bool:
    """True if eligible, with a signature, and not the exact copy of an earlier document."""
    if not row.is_eligible or row.signature is None:
        return False
    is_before = (claims.c.text_hash == row.text_hash) & (claims.c.seq < row.seq) & claims.c.is_eligible
    return connection.scalar(sa.select(claims.c.seq).where(is_before).limit(1)) is None


def _read(connection: sa.Connection, doc_ids: Iterable[str]) -> list[Any]:
    rows = list[Any]()
    for group in in_groups(doc_ids):
        rows += connection.execute(sa.select(claims).where(claims.c.doc_id.in_(group))).all()
    return rows
