"""Ends leases as `Catalogue` does, in a transaction of their own and with no document to keep in step."""

from collections.abc import Iterable

from ingest_assets.intake.queue.artifacts import Ending
from ingest_assets.intake.queue.queue import Queue, end_held


def ack(queue: Queue, token: str, ending: Ending, now: float) -> bool:
    """False when the lease was lost, and then nothing is changed."""
    with queue.database.begin() as connection:
        return end_held(connection, token, ending, now)


def ack_all(queue: Queue, tokens: Iterable[str], ending: Ending, now: float) -> set[str]:
    """Ends many at once; gives back the tokens that were lost."""
    with queue.database.begin() as connection:
        return {token for token in tokens if not end_held(connection, token, ending, now)}
