"""Near duplicates: of documents that are alike, the one with the lowest sequence number stands.

A document is alike to one before it only while that one stands itself, so a chain of small changes does not
take away its own beginning. Decided in the order of numbers, and therefore the same whoever came first.
"""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ingest_assets.intake.database import in_groups
from ingest_assets.intake.schema import bands, claims


@dataclass(frozen=True, slots=True)
class Alike:
    """From which similarity on two documents are alike, and how that of two signatures is told."""

    threshold: float
    similarity: Callable[[bytes, bytes], float]


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
