"""Acquire the queued artifacts of a batch."""

import functools
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from ingest_assets.app.graph import FIRST_STAGE
from ingest_assets.app.home import Home
from ingest_assets.app.telemetry import start_export
from ingest_assets.core.layout import Layout
from ingest_assets.intake.fetch import Fetcher
from ingest_assets.intake.queue.acquire import Acquirer, Acquisition, GetBytes, QueueServices
from ingest_assets.intake.queue.catalogue import Catalogue
from ingest_assets.intake.queue.metrics import QueueMetrics
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.intake.queue.quotas import Quotas
from ingest_assets.parsing.media import media_type
from ingest_assets.runner.attempt import caught
from ingest_assets.settings.intake import FetchOptions
from ingest_assets.storage.blobs import ContentStore


def acquire_batch(
    home: Home, batch: str, log: Callable[[str], None], say: Callable[[str], None]
) -> dict[str, Any]:
    """Acquire the artifacts that are due, and return the counts shown with the materialization.

    Runs before the batch is planned and outside the table's lock, so that several runs can share the work.
    """
    start_export()
    requeue_lost(home, batch)
    waiting = home.pending_artifacts(batch)
    if not waiting:
        return {}
    say(f"documents: acquiring {len(waiting)} of this batch.")
    limits, database = home.options(FIRST_STAGE), home.ledger.database
    quotas = Quotas(database, home.settings.queue.quotas)
    acquirer = Acquirer(
        QueueServices(
            home.queue, Catalogue(home.ledger), quotas, QueueMetrics(database), home.settings.queue
        ),
        _get_bytes(home.layout, home.settings.fetch),
        lambda call: caught(call)[1],
        worker_name(),
        max_seconds=limits.per_item_timeout_s or float("inf"),
        grace_s=limits.grace_s,
        tell=log,
        show=lambda so_far: say(f"documents: {acquisition_line(so_far)} so far."),
    )
    acquired = acquirer.run(batch)
    remaining = len(home.pending_artifacts(batch))
    say(f"documents: {acquisition_line(acquired)}; {remaining} left for later.")
    return {
        **{f"acquired_{state.replace(' ', '_')}": count for state, count in sorted(acquired.ended.items())},
        "acquired_bytes": acquired.size_bytes,
        "still_to_acquire": remaining,
    }


def acquisition_line(acquired: Acquisition) -> str:
    """Return the result of an acquisition as a line for a log."""
    ends = ", ".join(f"{count} {state}" for state, count in sorted(acquired.ended.items()))
    return f"{ends or 'nothing acquired'}, {acquired.size_bytes / 1e6:.1f} MB received"


@functools.cache
def _get_bytes(layout: Layout, options: FetchOptions) -> GetBytes:
    """Cached: all runs of a process share the per-host state."""
    blobs = ContentStore(layout)
    return GetBytes(Fetcher(blobs, options, media_type), blobs, media_type)


def requeue_lost(home: Home, batch: str) -> None:
    """Queue artifacts again whose worker died, and acquired ones whose stored bytes are missing."""
    expire_dead_leases(home)
    blobs = ContentStore(home.layout)
    acquired = [a for a in home.queue.find(Filter(batch=batch)) if a.state == "done" and a.content_hash]
    lost = [a.artifact_id for a in acquired if blobs.find(a.content_hash or "") is None]
    if lost:
        home.queue.refresh(time.time(), Filter(artifact_ids=lost))


def worker_name() -> str:
    """Return a unique name of this process, by which others on this machine can check whether it runs."""
    return f"{_machine()} {os.getpid()} {psutil.Process().create_time():.2f}"


def expire_dead_leases(home: Home) -> int:
    """End the leases of dead workers on this machine; leases of other machines expire by time."""
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
    """Return host and PID namespace: containers can share a host name, and each has a pid 1."""
    return f"{socket.gethostname()} {Path('/proc/self/ns/pid').stat().st_ino}"
