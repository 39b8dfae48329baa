"""What the queue of a home holds and waits for, as commands print it and `--json` gives it."""

import math
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from ingest_assets.defs.home import Home
from ingest_assets.intake.artifacts import Artifact
from ingest_assets.intake.inbox import Filter
from ingest_assets.intake.limits import Quotas
from ingest_assets.intake.measures import Measures


@dataclass(frozen=True, slots=True)
class Waiting:
    """Artifacts that are still to be acquired, and when the first of them can be tried."""

    count: int = 0
    first_at: float = math.inf
    first_batch: str = ""


def read_waiting(home: Home, but_not: Collection[str] = ()) -> Waiting:
    """Of all batches but some; artifacts that have no batch yet are not counted."""
    found = {key: value for key, value in home.queue.due_batches(math.inf).items() if key not in but_not}
    if not found:
        return Waiting()
    first = min(found, key=lambda key: found[key][1])
    return Waiting(sum(count for count, _ in found.values()), found[first][1], first)


def first_waiting(home: Home, batch: str) -> Artifact | None:
    """The artifact of a batch that can be tried before the others."""
    waiting = [a for a in home.queue.find(Filter(batch=batch)) if a.state in ("queued", "in_progress")]
    return min(waiting, key=free_at, default=None)


def free_at(artifact: Artifact) -> float:
    """When it can be taken: its time has come, or its worker has been silent for too long."""
    return artifact.not_before if artifact.lease_expires is None else artifact.lease_expires


def queue_object(home: Home) -> dict[str, Any]:
    """States, and how many artifacts are still to be acquired from when on."""
    waiting = read_waiting(home)
    at = utc(waiting.first_at) if waiting.count else None
    return {"states": home.queue.stats(time.time()).states, "waiting": waiting.count, "next_at": at}


def queue_line(queue: dict[str, Any]) -> str:
    """The same, for a person: why something is not in the tables yet, and what to do."""
    states = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in queue["states"].items())
    if not queue["waiting"]:
        return f"Queue: {states}."
    return (
        f"Queue: {states}. {queue['waiting']} are not acquired yet, the next can be tried at "
        f"{queue['next_at']}: `ingest queue run --drain` stays until all are."
    )


def stats_object(home: Home) -> dict[str, Any]:
    """Everything the ledger knows of the queue in figures."""
    database, now = home.ledger.database, time.time()
    stats = home.queue.stats(now)
    use = Quotas(database, home.settings.queue.quotas).use()
    waiting = read_waiting(home)
    return {
        "home": str(home.layout.home),
        "total": stats.total,
        **asdict(stats),
        "next_at": utc(waiting.first_at) if waiting.count else None,
        "quotas": {api: asdict(counts) for api, counts in use.items()},
        "totals": asdict(Measures(database).totals()),
    }


def utc(at: float) -> str:
    """A time that is the same for everybody who reads it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
