"""The locks of those who write a table."""

from collections.abc import Callable
from pathlib import Path

from ingest_assets.defs.graph import GRAPH
from ingest_assets.defs.home import Home
from ingest_assets.defs.sets import recover
from ingest_assets.storage.locks import HeldLocks


def held_locks(
    home: Home, stage: str, batch: str, on_wait: Callable[[Path], None], *, reads: bool = True
) -> HeldLocks:
    """Alone on the table that is written, shared on those that are read: rows must not move underneath.

    In a family no set changes its place meanwhile, and what somebody was killed at is finished.
    """
    read = [home.layout.lock(home.asset(above), batch) for above in GRAPH[stage].reads] if reads else []
    family = [home.layout.family_lock(home.serving(stage))] if GRAPH[stage].has_sets else []
    locks = HeldLocks(shared=family + read, exclusive=[home.layout.lock(home.serving(stage), batch)])
    locks.acquire(on_wait)
    while family and home.family(stage).is_torn():
        locks.release()
        recover(home, stage)
        locks.acquire(on_wait)
    return locks
