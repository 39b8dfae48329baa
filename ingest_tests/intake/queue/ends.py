"""Ends leases as `Catalogue` does, in separate transactions and without a document."""

from collections.abc import Iterable

from ingest_assets.intake.queue.artifacts import Ending
from ingest_assets.intake.queue.queue import Queue, end_held


def ack(queue: Queue, token: str, ending: Ending, now: float) -> bool:
    """End a lease; False, and no change, if it was lost."""
    with queue.database.begin() as connection:
        return end_held(connection, token, ending, now)


def ack_all(queue: Queue, tokens: Iterable[str], ending: Ending, now: float) -> set[str]:
    """End many leases at once; return the tokens that were lost."""
    with queue.database.begin() as connection:
        return {token for token in tokens if not end_held(connection, token, ending, now)}
