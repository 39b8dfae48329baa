"""Forgetting failures: what is released is tried again by the next run, or right away by whoever asks."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ingest_assets.defs.home import Home
from ingest_assets.defs.inbox import FailedDocument
from ingest_assets.defs.locking import held_locks
from ingest_assets.intake.inbox import Filter
from ingest_assets.storage.forgetting import forget_failures

_IDS_PER_TRANSACTION = 500


def requeue(home: Home, failures: Sequence[FailedDocument]) -> None:
    """Queue again what the queue has given up, with all its attempts before it."""
    ids = [failure.doc_id for failure in failures if failure.is_in_queue]
    for start in range(0, len(ids), _IDS_PER_TRANSACTION):
        some = Filter(artifact_ids=ids[start : start + _IDS_PER_TRANSACTION])
        home.queue.retry_failed(time.time(), some, reset_attempts=True)


def release(
    home: Home, failures: Sequence[FailedDocument], on_wait: Callable[[Path], None] = lambda _path: None
) -> list[FailedDocument]:
    """Forget failures, so that the next run tries their documents again; gives those that were still there.

    Waits for runs that are writing the tables concerned, and tells which.
    """
    requeue(home, failures)
    tables: dict[tuple[str, str], set[str]] = {}
    for failure in failures:
        if not failure.is_in_queue:
            tables.setdefault((failure.stage, failure.batch), set()).add(failure.doc_id)
    forgotten: dict[tuple[str, str], list[str]] = {}
    for (stage, batch), ids in tables.items():
        forgotten[stage, batch] = _forget(home, stage, batch, ids, on_wait)
        home.ledger.touch([batch])
    return [f for f in failures if f.is_in_queue or f.doc_id in forgotten[f.stage, f.batch]]


def _forget(home: Home, stage: str, batch: str, ids: set[str], on_wait: Callable[[Path], None]) -> list[str]:
    locks = held_locks(home, stage, batch, on_wait, reads=False)
    try:
        return forget_failures(home.layout, home.stages[stage].spec, batch, ids)
    finally:
        locks.release()
