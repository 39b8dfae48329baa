"""The queue on each database: import 100,000 artifacts, lease and ack, also with a busy host."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.artifacts import Ending, NewArtifact
from ingest_assets.intake.queue.queue import Queue
from ingest_assets.settings.intake import QueueOptions
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.intake.postgres import running_postgres
from ingest_tests.intake.queue.ends import ack

ARTIFACTS = 100_000
DRAINED = 2_000
LEASE_LIMIT = 50
LOOKS = 20


def measure(size: Size) -> list[Figure]:
    """Measure one process; several are limited by the database's single writer, or its locks."""
    with tempfile.TemporaryDirectory() as folder, running_postgres() as server:
        return [
            *_measured("SQLite", Path(folder) / "ledger.sqlite", size),
            *_measured("PostgreSQL", server.fresh_url(), size),
        ]


def _measured(name: str, where: Path | str, size: Size) -> Iterator[Figure]:
    ledger = Ledger(where)
    queue = Queue(ledger.database, QueueOptions(max_per_host=LEASE_LIMIT))
    lines = [f'{{"id": "a{n}", "url": "https://full.org/{n}"}}' for n in range(size.of(ARTIFACTS))]
    started = time.perf_counter()
    queue.enqueue(map(NewArtifact.model_validate_json, lines), time.time())
    yield Figure(f"{name}: import", time.perf_counter() - started, "s", "<", 30)
    started = time.perf_counter()
    drained = _drain(queue, size.of(DRAINED))
    yield Figure(
        f"{name}: leased by {LEASE_LIMIT} and acked", drained / (time.perf_counter() - started), "/s"
    )
    queue.enqueue(
        (NewArtifact(artifact_id=f"b{n}", url=f"https://h{n}.org/") for n in range(LOOKS)), time.time()
    )
    assert len(queue.lease("fills the host", LEASE_LIMIT, time.time())) == LEASE_LIMIT
    started = time.perf_counter()
    found = [queue.lease("passes it", 1, time.time())[0].artifact.host for _ in range(LOOKS)]
    yield Figure(f"{name}: a lease past a full host", 1000 * (time.perf_counter() - started) / LOOKS, "ms")
    assert found == [f"h{n}.org" for n in range(LOOKS)]
    ledger.close()


def _drain(queue: Queue, count: int) -> int:
    """Lease and ack, one ack at a time, like workers."""
    done = 0
    while done < count and (leases := queue.lease("drains", LEASE_LIMIT, time.time())):
        for lease in leases:
            assert ack(queue, lease.token, Ending("done"), time.time())
        done += len(leases)
    return done
