"""Duplicate claims: which of several equal or near-equal documents counts."""

import heapq
from collections.abc import Iterable, Sequence, Set
from typing import Any

import sqlalchemy as sa

from ingest_assets.core.ports import Alike, Claim, Standing
from ingest_assets.intake.database import in_groups
from ingest_assets.intake.ledger import Ledger, bump
from ingest_assets.intake.schema import bands, claims

_Winners = dict[str | None, tuple[int, str]]
# What a claim is compared by; its bands follow from these.
_STORED = ("doc_id", "batch", "seq", "basis", "text_hash", "is_eligible", "signature")


class Claims:
    """The claims of a ledger. `settle` is one transaction; batches may settle at the same time."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def of(self, batch: str) -> dict[str, Standing]:
        """How each document of a batch stands now."""
        with self._ledger.database.connect() as connection:
            mine = connection.execute(sa.select(claims).where(claims.c.batch == batch)).all()
            winners = _winners(connection, {row.text_hash for row in mine})
        return {
            row.doc_id: Standing(
                basis=row.basis,
                duplicate_of=_repeats(row, winners.get(row.text_hash)),
                near_duplicate_of=row.near_of,
                similarity=row.similarity,
                is_eligible=row.is_eligible,
            )
            for row in mine
        }

    def settle(self, batch: str, given: Sequence[Claim], alike: Alike | None = None) -> set[str]:
        """Replace what a batch claims; gives the other batches whose documents stand differently now.

        They get a new revision, for they have to run again. With `alike`, near duplicates are settled too.
        """
        with self._ledger.begin() as connection:
            touched = _settle(connection, batch, given, alike) - {batch}
            bump(connection, touched)
        return touched

    def leave(self, batch: str, doc_ids: Set[str], alike: Alike | None = None) -> None:
        """Of what a batch claims, leave only what these documents do."""
        with self._ledger.begin() as connection:
            rows = connection.execute(sa.select(claims).where(claims.c.batch == batch)).all()
            # What is claimed as before stays in the ledger as it is, with its bands.
            kept = [
                Claim(row.doc_id, row.seq, row.basis, row.text_hash, row.is_eligible, row.signature)
                for row in rows
                if row.doc_id in doc_ids
            ]
            bump(connection, _settle(connection, batch, kept, alike) - {batch})


def _settle(connection: sa.Connection, batch: str, given: Sequence[Claim], alike: Alike | None) -> set[str]:
    """Replace a batch's claims; gives the batches of documents that repeat, or are alike to, another one
    than before, or none any more."""
    stored = connection.execute(
        sa.select(*(claims.c[name] for name in _STORED)).where(claims.c.batch == batch)
    )
    before = {row["doc_id"]: dict(row) for row in stored.mappings()}
    after = {
        claim.doc_id: {name: batch if name == "batch" else getattr(claim, name) for name in _STORED}
        for claim in given
    }
    changed = {doc_id for doc_id in {*before, *after} if before.get(doc_id) != after.get(doc_id)}
    texts = {rows[doc_id]["text_hash"] for rows in (before, after) for doc_id in changed & rows.keys()}
    stood, around = _winners(connection, texts), neighbours(connection, changed)
    for some in in_groups(changed):  # also where a document was in another batch before
        connection.execute(bands.delete().where(bands.c.doc_id.in_(some)))
        connection.execute(claims.delete().where(claims.c.doc_id.in_(some)))
    if rows := [row for doc_id, row in after.items() if doc_id in changed]:
        connection.execute(claims.insert(), rows)
    new = [claim for claim in given if claim.doc_id in changed]
    if shared := [{"band": band, "doc_id": claim.doc_id} for claim in new for band in claim.bands]:
        connection.execute(bands.insert(), shared)
    stand = _winners(connection, texts)
    concerned, touched = changed | around, set[str]()
    columns = (claims.c.doc_id, claims.c.batch, claims.c.seq, claims.c.text_hash)
    for some in in_groups(texts):
        for row in connection.execute(sa.select(*columns).where(claims.c.text_hash.in_(some))):
            concerned.add(row.doc_id)
            if _repeats(row, stood.get(row.text_hash)) != _repeats(row, stand.get(row.text_hash)):
                touched.add(row.batch)
    return touched | settle_alike(connection, concerned, alike)


def _winners(connection: sa.Connection, texts: Iterable[str | None]) -> _Winners:
    """The document with the lowest number that is eligible, for each text that has one."""
    found: _Winners = {}
    for some in in_groups(texts):
        is_one = claims.c.text_hash.in_(some) & claims.c.is_eligible
        first = sa.select(claims.c.text_hash, sa.func.min(claims.c.seq).label("seq")).where(is_one)
        firsts = first.group_by(claims.c.text_hash).subquery()
        is_first = (claims.c.text_hash == firsts.c.text_hash) & (claims.c.seq == firsts.c.seq)
        rows = connection.execute(
            sa.select(claims.c.text_hash, claims.c.seq, claims.c.doc_id).join(firsts, is_first)
        )
        found |= {text: (seq, doc_id) for text, seq, doc_id in rows}
    return found


def _repeats(row: Any, winner: tuple[int, str] | None) -> str | None:
    return winner[1] if winner is not None and winner[0] < row.seq else None


# Near duplicates: of documents that are alike, the one with the lowest sequence number stands.
#
# A document is alike to one before it only while that one stands itself, so a chain of small changes does not
# take away its own beginning. Decided in the order of numbers, and therefore the same whoever came first.


def neighbours(connection: sa.Connection, doc_ids: Iterable[str]) -> set[str]:
    """Documents that share a band with one of these."""
    here, there = bands.alias("here"), bands.alias("there")
    pairs = sa.select(there.c.doc_id).join(here, here.c.band == there.c.band).distinct()
    found = set[str]()
    for some in in_groups(doc_ids):
        found |= set(connection.scalars(pairs.where(here.c.doc_id.in_(some))))
    return found


def settle_alike(connection: sa.Connection, concerned: Iterable[str], alike: Alike | None) -> set[str]:
    """Decide again for these documents and for all that follow from them; gives the batches of those that
    stand differently. Without `alike`, nobody is like another."""
    rows = _read(connection, concerned)
    if alike is None:
        return {row.batch for row in rows if row.near_of is not None and _decide(connection, row, [], None)}
    line = [(row.seq, row.doc_id) for row in rows]
    heapq.heapify(line)
    done, touched = set[str](), set[str]()
    while line:
        _, doc_id = heapq.heappop(line)
        if doc_id in done:
            continue
        done.add(doc_id)
        (row,) = _read(connection, [doc_id])
        around = _read(connection, neighbours(connection, [doc_id]) - {doc_id})
        if _decide(connection, row, around, alike):
            touched.add(row.batch)
        for other in around:
            if other.seq > row.seq and other.doc_id not in done:
                heapq.heappush(line, (other.seq, other.doc_id))
    return touched


def _decide(connection: sa.Connection, row: Any, around: list[Any], alike: Alike | None) -> bool:
    """True when it stands differently now."""
    found: tuple[str | None, float | None] = (None, None)
    if alike is not None and _counts(connection, row):
        for other in sorted((o for o in around if o.seq < row.seq), key=lambda each: each.seq):
            likeness = alike.similarity(row.signature, other.signature)
            if likeness >= alike.threshold and other.near_of is None and _counts(connection, other):
                found = (other.doc_id, likeness)
                break
    if found == (row.near_of, row.similarity):
        return False
    here = claims.update().where(claims.c.doc_id == row.doc_id)
    connection.execute(here.values(near_of=found[0], similarity=found[1]))
    return True


def _counts(connection: sa.Connection, row: Any) -> bool:
    """Eligible, with a signature, and not the exact copy of a document before it."""
    if not row.is_eligible or row.signature is None:
        return False
    is_before = (claims.c.text_hash == row.text_hash) & (claims.c.seq < row.seq) & claims.c.is_eligible
    return connection.scalar(sa.select(claims.c.seq).where(is_before).limit(1)) is None


def _read(connection: sa.Connection, doc_ids: Iterable[str]) -> list[Any]:
    found = list[Any]()
    for some in in_groups(doc_ids):
        found += connection.execute(sa.select(claims).where(claims.c.doc_id.in_(some))).all()
    return found
