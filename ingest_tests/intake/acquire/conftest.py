"""A ledger, a store, a fetcher that can use the loopback, and a batch to acquire, with a fake clock."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.metrics import Meter

from ingest_assets.core.layout import Layout
from ingest_assets.intake.batches import assign_batches
from ingest_assets.intake.fetch import Fetcher, Network
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.acquire import Acquirer, Acquisition, GetBytes, QueueServices
from ingest_assets.intake.queue.artifacts import Artifact, NewArtifact
from ingest_assets.intake.queue.catalogue import Catalogue
from ingest_assets.intake.queue.metrics import QueueMetrics
from ingest_assets.intake.queue.queue import Queue
from ingest_assets.intake.queue.quotas import Quotas
from ingest_assets.parsing.media import media_type
from ingest_assets.runner.attempt import caught
from ingest_assets.settings.intake import BatchLimits, FetchOptions, QueueOptions
from ingest_assets.storage.blobs import ContentStore
from ingest_tests.intake.fetch.site import Site

NOW = 1_714_560_000.0  # 2024-05-01 10:40 UTC
EASY_FETCH = {"allow_private": True, "politeness_delay_s": 0, "idle_timeout_s": 5, "total_timeout_s": 20}
EASY_QUEUE = {"retry_backoff_seconds": 60, "jitter_seconds": 0, "max_per_host": 8}


@dataclass
class Intake:
    """Everything that acquires, in one home."""

    layout: Layout
    ledger: Ledger
    fetch: dict[str, Any] = field(default_factory=dict)
    queue_options: dict[str, Any] = field(default_factory=dict)
    network: Network | None = None
    meter: Meter | None = None
    grace_s: float = 5.0
    now: float = NOW
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._fetchers: dict[FetchOptions, Fetcher] = {}

    @property
    def options(self) -> QueueOptions:
        return QueueOptions(**(EASY_QUEUE | self.queue_options))

    @property
    def queue(self) -> Queue:
        return Queue(self.ledger.database, self.options)

    @property
    def measures(self) -> QueueMetrics:
        return QueueMetrics(self.ledger.database, self.meter)

    def add(self, artifact_id: str, **place: Any) -> str:
        """Queue an artifact in a batch and return the batch."""
        self.queue.enqueue([NewArtifact(artifact_id=artifact_id, **place)], self.now)
        assign_batches(self.ledger, BatchLimits(), self.now)
        return self[artifact_id].batch or ""

    def run(self, batch: str, clock: Callable[[], float] | None = None) -> Acquisition:
        """Run the batch and return the result."""
        return self.acquirer(clock).run(batch)

    def acquirer(self, clock: Callable[[], float] | None = None) -> Acquirer:
        """An acquirer for one run. The state of hosts lasts as long as the process, as in the product."""
        options = FetchOptions(**(EASY_FETCH | self.fetch))
        blobs = ContentStore(self.layout)
        fetcher = self._fetchers.setdefault(
            options, Fetcher(blobs, options, media_type, network=self.network)
        )
        database = self.ledger.database
        return Acquirer(
            QueueServices(
                self.queue,
                Catalogue(self.ledger),
                Quotas(database, self.options.quotas),
                self.measures,
                self.options,
            ),
            GetBytes(fetcher, blobs, media_type),
            lambda call: caught(call)[1],
            "worker",
            max_seconds=60,
            grace_s=self.grace_s,
            tell=self.lines.append,
            clock=clock or (lambda: self.now),
        )

    def acquire(self, artifact_id: str, url: str, rounds: int = 5) -> Artifact:
        """Queue a URL and run its batch, an hour apart, until it has ended."""
        batch = self.add(artifact_id, url=url)
        for _ in range(rounds):
            self.run(batch)
            if self[artifact_id].state != "queued":
                break
            self.now += 3600
        return self[artifact_id]

    def __getitem__(self, artifact_id: str) -> Artifact:
        found = self.queue.get(artifact_id)
        assert found is not None
        return found

    def living(self) -> dict[str, str]:
        """Return the documents that the tables must have, with their hashes."""
        return {d.doc_id: d.content_hash for d in self.ledger.documents() if not d.is_deleted()}


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[Intake]:
    """An empty home on SQLite."""
    layout = Layout(tmp_path / "home")
    ledger = Ledger(layout.ledger)
    yield Intake(layout, ledger)
    ledger.close()


@pytest.fixture
def intake_on_each(tmp_path: Path, ledger_is_at: Path | str) -> Iterator[Intake]:
    """An empty home on each database."""
    ledger = Ledger(ledger_is_at)
    yield Intake(Layout(tmp_path / "home"), ledger)
    ledger.close()


@pytest.fixture
def site() -> Iterator[Site]:
    """A site without pages."""
    with Site().open() as site:
        yield site
