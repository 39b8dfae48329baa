"""A queue on each database, with settings that make waits easy to calculate."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.artifacts import Ending, Failure, NewArtifact
from ingest_assets.intake.queue.queue import Queue
from ingest_assets.settings.intake import QueueOptions

NOW = 1_714_560_000.0
DONE = Ending("done")
BUSY = Failure("provider", "E_BUSY", "the server is busy.", retryable=True)
GONE = Failure("input", "E_GONE", "there is no such document; correct the URL.", retryable=False)


def artifact(number: int, host: str = "", **fields: object) -> NewArtifact:
    """Return an artifact with a short id: a file, or a page of a host."""
    place = {"url": f"https://{host}/{number}"} if host else {"path": f"/files/{number}.md"}
    return NewArtifact(artifact_id=f"a{number}", **place, **fields)


def some(count: int, host: str = "", first: int = 0, **fields: object) -> Iterator[NewArtifact]:
    """Return that many artifacts."""
    return (artifact(number, host, **fields) for number in range(first, first + count))


@pytest.fixture
def ledger(ledger_is_at: Path | str) -> Iterator[Ledger]:
    """A new ledger on each database."""
    ledger = Ledger(ledger_is_at)
    yield ledger
    ledger.close()


MakeQueue = Callable[..., Queue]


@pytest.fixture
def make_queue(ledger: Ledger) -> MakeQueue:
    """Creates queues of one ledger with any options."""

    def make(**options: object) -> Queue:
        given = {"retry_backoff_seconds": 60, "jitter_seconds": 0, "max_per_host": 1000, **options}
        return Queue(ledger.database, QueueOptions(**given), random.Random(7))

    return make


@pytest.fixture
def queue(make_queue: MakeQueue) -> Queue:
    """A queue without jitter and with high limits."""
    return make_queue()
