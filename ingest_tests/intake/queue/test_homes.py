"""Batches of queued artifacts, beside those of scanned files."""

from ingest_assets.intake.batches import assign_batches
from ingest_assets.intake.queue.queue import Filter, Queue
from ingest_assets.settings.intake import BatchLimits, QueueOptions
from ingest_tests.intake.conftest import Watched
from ingest_tests.intake.queue.conftest import DONE, NOW, some
from ingest_tests.intake.queue.ends import ack

LIMITS = BatchLimits(max_documents=2)


def batch_of(queue: Queue) -> dict[str, str | None]:
    """Return the batch of every artifact."""
    return {found.artifact_id: found.batch for found in queue.find(Filter())}


def test_artifacts_get_batches_in_queue_order(watched: Watched) -> None:
    """Numbers follow those of scanned files; a batch is permanent."""
    queue = Queue(watched.ledger.database, QueueOptions())
    watched.write("a.md")
    watched.scan()
    queue.enqueue(some(3), NOW)

    first = assign_batches(watched.ledger, LIMITS, NOW)
    queue.enqueue(some(1, first=3), NOW)
    watched.write("b.md")
    watched.scan()
    second = assign_batches(watched.ledger, LIMITS, NOW)

    assert first == {"2024-05-01-0002", "2024-05-01-0003"}
    assert second == {"2024-05-01-0005"}
    assert batch_of(queue) == {
        "a0": "2024-05-01-0002",
        "a1": "2024-05-01-0002",
        "a2": "2024-05-01-0003",
        "a3": "2024-05-01-0005",
    }
    assert len(set(watched.ledger.batches().values())) == 5
    assert assign_batches(watched.ledger, LIMITS, NOW) == set()


def test_a_lease_can_be_for_one_batch(watched: Watched) -> None:
    """A run of a batch leases only its artifacts; two runs share them."""
    queue = Queue(watched.ledger.database, QueueOptions())
    queue.enqueue(some(3), NOW)
    assign_batches(watched.ledger, LIMITS, NOW)
    queue.enqueue(some(1, first=3), NOW)

    one = queue.lease("one", 1, NOW, batch="2024-05-01-0001")
    two = queue.lease("two", 9, NOW, batch="2024-05-01-0001")
    none = queue.lease("two", 9, NOW, batch="2024-05-01-0001")
    rest = queue.lease("three", 9, NOW)

    assert [[lease.artifact.artifact_id for lease in leases] for leases in (one, two, none, rest)] == [
        ["a0"],
        ["a1"],
        [],
        ["a2", "a3"],
    ]
    assert batch_of(queue)["a3"] is None
    assert ack(queue, one[0].token, DONE, NOW)
