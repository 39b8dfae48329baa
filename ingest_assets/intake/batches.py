"""Assign new documents to batches."""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime

import sqlalchemy as sa

from ingest_assets.intake.ledger import Ledger, bump, last_seq
from ingest_assets.intake.schema import artifacts
from ingest_assets.intake.schema import batches as batch_table
from ingest_assets.settings.intake import BatchLimits

MEBIBYTE = 1024 * 1024


def batch_key(day: date, number: int) -> str:
    """Return `YYYY-MM-DD-NNNN`, which sorts by time."""
    return f"{day.isoformat()}-{number:04d}"


def next_number(day: date, keys: Iterable[str]) -> int:
    """Return the first free batch number of a day."""
    prefix = f"{day.isoformat()}-"
    taken = [int(key.removeprefix(prefix)) for key in keys if key.startswith(prefix)]
    return max(taken, default=0) + 1


def cut(sizes: Iterable[int], limits: BatchLimits, day: date, first_number: int) -> Iterator[str]:
    """Yield one batch key per document, in order; a batch ends at its document or byte limit."""
    number, count, total = first_number, 0, 0
    for size in sizes:
        is_full = count == limits.max_documents or total + size > limits.max_mebibytes * MEBIBYTE
        if count and is_full:
            number, count, total = number + 1, 0, 0
        count, total = count + 1, total + size
        yield batch_key(day, number)


# Batches of queued artifacts.


def assign_batches(ledger: Ledger, limits: BatchLimits, now: float) -> set[str]:
    """Assign artifacts without a batch to new batches, in queue order; return the new keys.

    Each also gets its document's sequence number, so that the order of acquisition does not matter. Sizes
    are unknown before acquisition, so only the document limit applies.
    """
    day = datetime.fromtimestamp(now, UTC).date()
    with ledger.begin() as connection:
        unassigned = sa.select(artifacts.c.seq).where(artifacts.c.batch.is_(None)).order_by(artifacts.c.seq)
        numbers = connection.scalars(unassigned).all()
        first = next_number(day, connection.scalars(sa.select(batch_table.c.key)))
        keys = cut((0 for _ in numbers), limits, day, first)
        members: dict[str, list[int]] = {}
        for seq, key in zip(numbers, keys, strict=True):
            members.setdefault(key, []).append(seq)
        # `enqueue` is serial, so no number appears later between the first and the last: one update per
        # batch sets the batch, and one for all sets document numbers in queue order.
        for key, seqs in members.items():
            is_member = artifacts.c.seq.between(seqs[0], seqs[-1]) & artifacts.c.batch.is_(None)
            connection.execute(artifacts.update().where(is_member).values(batch=key))
        if numbers:
            is_new = artifacts.c.seq.between(numbers[0], numbers[-1]) & artifacts.c.doc_seq.is_(None)
            doc_seq = last_seq(connection) + 1 - numbers[0] + artifacts.c.seq
            connection.execute(artifacts.update().where(is_new).values(doc_seq=doc_seq))
        bump(connection, members)
    return set(members)
