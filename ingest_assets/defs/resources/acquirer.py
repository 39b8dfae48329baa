"""Acquiring what is queued, as a Dagster resource: the ledger, the fetcher and the store brought together."""

import functools
import time
from typing import Any

import dagster as dg

from ingest_assets.defs.home import Home
from ingest_assets.defs.orphans import settle_leases, worker_name
from ingest_assets.defs.resources.home import HomeResource
from ingest_assets.defs.resources.runner import to_standard_error
from ingest_assets.defs.telemetry import export_once
from ingest_assets.intake.acquire import Acquirer, Acquisition, Desk
from ingest_assets.intake.catalogue import Catalogue
from ingest_assets.intake.fetch import Fetcher
from ingest_assets.intake.getting import GetBytes
from ingest_assets.intake.inbox import Filter
from ingest_assets.intake.limits import Quotas
from ingest_assets.intake.measures import Measures
from ingest_assets.model.options import FetchOptions
from ingest_assets.parsing.media import media_type
from ingest_assets.runner.attempt import caught
from ingest_assets.storage.blobs import ContentStore
from ingest_assets.storage.layout import Layout


class ArtifactAcquirer(dg.ConfigurableResource):
    """Gets the artifacts of a batch, before its documents are planned and outside the table's lock: several
    runs may share the work of one batch."""

    home: HomeResource
    progress: str = "log"

    def run(self, context: dg.AssetExecutionContext) -> dict[str, Any]:
        """Acquire what is due; gives what the materialisation says of it."""
        export_once()
        home, batch = self.home.open(), context.partition_key
        line_up(home, batch)
        waiting = home.awaited(batch)
        if not waiting:
            return {}
        say = context.log.info if self.progress == "log" else to_standard_error
        say(f"documents: {len(waiting)} artifacts of this batch are still to be acquired.")
        found = acquirer(
            home, tell=context.log.info, show=lambda so_far: say(f"documents: {as_line(so_far)} so far.")
        ).run(batch)
        left = len(home.awaited(batch))
        say(f"documents: {as_line(found)}; {left} are left for later.")
        return {
            **{f"acquired_{state.replace(' ', '_')}": count for state, count in sorted(found.ended.items())},
            "acquired_bytes": found.size_bytes,
            "still_to_acquire": left,
        }


def acquirer(home: Home, **options: Any) -> Acquirer:
    """Acquires for this process."""
    limits = home.options("documents")
    return Acquirer(
        Desk(
            home.queue,
            Catalogue(home.ledger),
            Quotas(home.ledger.database, home.settings.queue.quotas),
            Measures(home.ledger.database),
            home.settings.queue,
        ),
        _get_bytes(home.layout, home.settings.fetch),
        lambda call: caught(call)[1],
        worker_name(),
        max_seconds=limits.per_item_timeout_s or float("inf"),
        grace_s=limits.grace_s,
        **options,
    )


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
    """Put into the line what nobody is at any more, and what was acquired and is lost."""
    settle_leases(home)
    _queue_lost_blobs(home, batch)


def _queue_lost_blobs(home: Home, batch: str) -> None:
    """Queue again what was acquired and whose bytes are not in the store any more."""
    blobs = ContentStore(home.layout)
    acquired = [a for a in home.queue.find(Filter(batch=batch)) if a.state == "done" and a.content_hash]
    lost = [a.artifact_id for a in acquired if blobs.find(a.content_hash or "") is None]
    if lost:
        home.queue.refresh(time.time(), Filter(artifact_ids=lost))
