"""Home batches for queued artifacts."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import sqlalchemy as sa

from ingest_assets.intake import batches
from ingest_assets.intake.ledger import Ledger, bump, last_seq
from ingest_assets.intake.schema import artifacts
from ingest_assets.intake.schema import batches as batch_table
from ingest_assets.model.options import BatchLimits


def give_homes(ledger: Ledger, limits: BatchLimits, now: float, at_most: int | None = None) -> set[str]:
    """Cut artifacts without a home into new batches, in the order they came; gives back the new keys.

    Each gets its document's sequence number, too: which of them is acquired first must not matter. Sizes are
    not known before they are acquired, so only the number of documents bounds a batch.
    """
    day = datetime.fromtimestamp(now, UTC).date()
    with ledger.begin() as connection:
        homeless = sa.select(artifacts.c.seq).where(artifacts.c.batch.is_(None)).order_by(artifacts.c.seq)
        numbers = connection.scalars(homeless.limit(at_most)).all()
        first = batches.next_number(day, connection.scalars(sa.select(batch_table.c.key)))
        keys = batches.cut((0 for _ in numbers), limits, day, first)
        members: dict[str, list[int]] = {}
        for seq, key in zip(numbers, keys, strict=True):
            members.setdefault(key, []).append(seq)
        _move_in(connection, members)
        _number(connection, numbers)
        bump(connection, members)
    return set(members)


def _move_in(connection: sa.Connection, members: Mapping[str, list[int]]) -> None:
    """One update a batch: `enqueue` is serial, so no number appears later between a first and a last one."""
    for key, seqs in members.items():
        is_member = artifacts.c.seq.between(seqs[0], seqs[-1]) & artifacts.c.batch.is_(None)
        connection.execute(artifacts.update().where(is_member).values(batch=key))


def _number(connection: sa.Connection, seqs: Sequence[int]) -> None:
    """Document numbers in the order of the line. As there, nothing is between a first and a last one."""
    if seqs:
        is_here = artifacts.c.seq.between(seqs[0], seqs[-1]) & artifacts.c.doc_seq.is_(None)
        number = last_seq(connection) + 1 - seqs[0] + artifacts.c.seq
        connection.execute(artifacts.update().where(is_here).values(doc_seq=number))
