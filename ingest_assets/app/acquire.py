"""Acquire the queued artifacts of a batch: the ledger, the fetcher and the store brought together."""

import functools
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from ingest_assets.app.graph import INTAKE
from ingest_assets.app.home import Home
from ingest_assets.app.telemetry import export_once
from ingest_assets.core.layout import Layout
from ingest_assets.intake.fetch import Fetcher
from ingest_assets.intake.queue.acquire import Acquirer, Acquisition, Desk, GetBytes
from ingest_assets.intake.queue.acquired import Catalogue
from ingest_assets.intake.queue.metrics import Measures
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.intake.queue.quotas import Quotas
from ingest_assets.parsing.media import media_type
from ingest_assets.runner.attempt import caught
from ingest_assets.settings.intake import FetchOptions
from ingest_assets.storage.blobs import ContentStore


def acquire_batch(
    home: Home, batch: str, log: Callable[[str], None], say: Callable[[str], None]
) -> dict[str, Any]:
    """Acquire what is due, before the batch's documents are planned and outside the table's lock: several
    runs may share the work of one batch. Gives the counts that a materialization shows."""
    export_once()
    line_up(home, batch)
    waiting = home.awaited(batch)
    if not waiting:
        return {}
    say(f"documents: {len(waiting)} artifacts of this batch are still to be acquired.")
    limits, database = home.options(INTAKE), home.ledger.database
    quotas = Quotas(database, home.settings.queue.quotas)
    acquirer = Acquirer(
        Desk(home.queue, Catalogue(home.ledger), quotas, Measures(database), home.settings.queue),
        _get_bytes(home.layout, home.settings.fetch),
        lambda call: caught(call)[1],
        worker_name(),
        max_seconds=limits.per_item_timeout_s or float("inf"),
        grace_s=limits.grace_s,
        tell=log,
        show=lambda so_far: say(f"documents: {as_line(so_far)} so far."),
    )
    found = acquirer.run(batch)
    left = len(home.awaited(batch))
    say(f"documents: {as_line(found)}; {left} are left for later.")
    return {
        **{f"acquired_{state.replace(' ', '_')}": count for state, count in sorted(found.ended.items())},
        "acquired_bytes": found.size_bytes,
        "still_to_acquire": left,
    }


def as_line(found: Acquisition) -> str:
    """What came of it, for a log."""
    ends = ", ".join(f"{count} {state}" for state, count in sorted(found.ended.items()))
    return f"{ends or 'nothing could be taken'}, {found.size_bytes / 1e6:.1f} MB received"


@functools.cache
def _get_bytes(layout: Layout, options: FetchOptions) -> GetBytes:
    """One per process, for what is known of hosts must be known to all runs in it."""
    blobs = ContentStore(layout)
    return GetBytes(Fetcher(blobs, options, media_type), blobs, media_type)


def line_up(home: Home, batch: str) -> None:
    """Queue again what no living worker holds any more, and what was acquired and has lost its bytes."""
    settle_leases(home)
    blobs = ContentStore(home.layout)
    acquired = [a for a in home.queue.find(Filter(batch=batch)) if a.state == "done" and a.content_hash]
    lost = [a.artifact_id for a in acquired if blobs.find(a.content_hash or "") is None]
    if lost:
        home.queue.refresh(time.time(), Filter(artifact_ids=lost))


def worker_name() -> str:
    """Who this process is, so that others on this machine can tell when it is gone."""
    return f"{_machine()} {os.getpid()} {psutil.Process().create_time():.2f}"


def settle_leases(home: Home) -> int:
    """End the leases of workers of this machine that are dead; those of other machines end by time."""
    now = time.time()
    return sum(home.queue.expire(worker, now) for worker in home.queue.workers() if _is_dead(worker))


def _is_dead(worker: str) -> bool:
    machine, process, started = worker.rsplit(" ", 2)
    if machine != _machine():
        return False
    try:
        return f"{psutil.Process(int(process)).create_time():.2f}" != started
    except psutil.NoSuchProcess:
        return True


def _machine() -> str:
    """This host and its process numbers: containers may share a name, and each has a pid 1 of its own."""
    return f"{socket.gethostname()} {Path('/proc/self/ns/pid').stat().st_ino}"
