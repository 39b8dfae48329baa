"""Duplicate claims: which of several equal or near-equal documents counts."""

import heapq
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from ingest_assets.core.ports import Alike, Claim, Standing
from ingest_assets.intake.database import in_groups
from ingest_assets.intake.ledger import Ledger, bump
from ingest_assets.intake.schema import bands, claims

# Near duplicates: of documents that are alike, the one with the lowest sequence number stands.
#
# A document is alike to one before it only while that one stands itself, so a chain of small changes does not
# take away its own beginning. Decided in the order of numbers, and therefore the same whoever came first.


def neighbours(connection: sa.Connection, doc_ids: Iterable[str]) -> set[str]:
    """Documents that share a band with one of these."""
    here, there = bands.alias("here"), bands.alias("there")
    pairs = sa.select(there.c.doc_id).join(here, here.c.band == there.c.band).distinct()
    found = set[str]()
    for some in in_groups(sorted(set(doc_ids))):
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
    for some in in_groups(sorted(set(doc_ids))):
        is_one = claims.c.doc_id.in_(some)
        found += connection.execute(sa.select(claims).where(is_one)).all()
    return found


@dataclass(frozen=True, slots=True)
class _Row:
    doc_id: str
    batch: str
    seq: int
    basis: str
    text_hash: str | None
    is_eligible: bool
    signature: bytes | None


_Winners = dict[str | None, tuple[int, str]]
_ROW = [claims.c[name] for name in _Row.__dataclass_fields__]


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
            rows = _rows(connection, claims.c.batch == batch)
            kept = [_claim(row) for row in rows if row.doc_id in doc_ids]
            bump(connection, _settle(connection, batch, kept, alike) - {batch})


def _claim(row: _Row) -> Claim:
    """What is claimed as before stays in the ledger as it is, with its bands."""
    return Claim(row.doc_id, row.seq, row.basis, row.text_hash, row.is_eligible, row.signature)


def _settle(connection: sa.Connection, batch: str, given: Sequence[Claim], alike: Alike | None) -> set[str]:
    before = {row.doc_id: row for row in _rows(connection, claims.c.batch == batch)}
    after = {claim.doc_id: _row(claim, batch) for claim in given}
    changed = {doc_id for doc_id in {*before, *after} if before.get(doc_id) != after.get(doc_id)}
    texts = {row.text_hash for rows in (before, after) for row in rows.values() if row.doc_id in changed}
    stood, around = _winners(connection, texts), neighbours(connection, changed)
    _replace(connection, changed, [claim for claim in given if claim.doc_id in changed], batch)
    touched = _touched(connection, stood, _winners(connection, texts))
    concerned = changed | around | {row.doc_id for row in _of_texts(connection, texts)}
    return touched | settle_alike(connection, concerned, alike)


def _row(claim: Claim, batch: str) -> _Row:
    named = {name: getattr(claim, name) for name in _Row.__dataclass_fields__ if name != "batch"}
    return _Row(batch=batch, **named)


def _touched(connection: sa.Connection, stood: _Winners, stand: _Winners) -> set[str]:
    """The batches of documents that repeat another one than before, or none any more."""
    contested = [text for text in {*stood, *stand} if stood.get(text) != stand.get(text)]
    return {
        row.batch
        for row in _of_texts(connection, contested)
        if _repeats(row, stood.get(row.text_hash)) != _repeats(row, stand.get(row.text_hash))
    }


def _of_texts(connection: sa.Connection, texts: Iterable[str | None]) -> Iterator[_Row]:
    for some in _groups(texts):
        yield from _rows(connection, claims.c.text_hash.in_(some))


def _winners(connection: sa.Connection, texts: Iterable[str | None]) -> _Winners:
    """The document with the lowest number that is eligible, for each text that has one."""
    found: _Winners = {}
    for some in _groups(texts):
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


def _replace(connection: sa.Connection, changed: Set[str], given: Sequence[Claim], batch: str) -> None:
    """Also where a document was in another batch before."""
    for some in _groups(changed):
        connection.execute(bands.delete().where(bands.c.doc_id.in_(some)))
        connection.execute(claims.delete().where(claims.c.doc_id.in_(some)))
    rows = [asdict(_row(claim, batch)) for claim in given]
    if rows:
        connection.execute(claims.insert(), rows)
    shared = [{"band": band, "doc_id": claim.doc_id} for claim in given for band in claim.bands]
    if shared:
        connection.execute(bands.insert(), shared)


def _rows(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[_Row]:
    return [_Row(*row) for row in connection.execute(sa.select(*_ROW).where(*conditions))]


def _groups(values: Iterable[str | None]) -> Iterator[Sequence[str]]:
    return in_groups(sorted({value for value in values if value is not None}))
