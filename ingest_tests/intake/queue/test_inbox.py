"""Counts of the queue, and failures that are retried."""

import pytest

from ingest_assets.intake.batches import assign_batches
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.artifacts import Ending
from ingest_assets.intake.queue.queue import Filter, Queue
from ingest_assets.settings.intake import BatchLimits
from ingest_tests.intake.queue.conftest import BUSY, DONE, GONE, NOW, artifact, some
from ingest_tests.intake.queue.ends import ack


@pytest.fixture
def failed(queue: Queue) -> Queue:
    """Two artifacts with 404 (a0, a1), one whose server was busy (a2), one done (a3)."""
    queue.enqueue([*some(3, max_attempts=1), artifact(3)], NOW)
    leases = queue.lease("worker", 4, NOW)
    for lease, failure in zip(leases, [GONE, GONE, BUSY], strict=False):
        queue.fail_and_retry(lease.token, failure, NOW)
    ack(queue, leases[3].token, DONE, NOW)
    return queue


def test_an_empty_queue_has_counts(queue: Queue) -> None:
    """Every state is listed."""
    stats = queue.stats(NOW)

    assert stats.states == {"queued": 0, "in_progress": 0, "done": 0, "skipped": 0, "error": 0}
    assert (stats.total, stats.delayed, stats.oldest_queued_age_s, stats.attempts) == (0, 0, None, 0)


def test_stats_count_states_hosts_and_waits(queue: Queue) -> None:
    """Depth per state, hosts in progress, delayed artifacts and ages."""
    queue.enqueue([artifact(0, "a.org"), artifact(1, "b.org", resolver="crossref"), artifact(2)], NOW)
    queue.enqueue([*some(3, first=3), artifact(6, not_before=NOW + 500)], NOW + 10)
    leases = queue.lease("worker", 5, NOW + 10, ttl_s=30)
    ack(queue, leases[3].token, Ending("skipped"), NOW + 11)
    queue.fail_and_retry(leases[4].token, BUSY, NOW + 12)

    stats = queue.stats(NOW + 45)

    assert stats.states == {"queued": 3, "in_progress": 3, "done": 0, "skipped": 1, "error": 0}
    assert stats.total == 7
    assert stats.hosts_in_progress == {"a.org": 1, "b.org": 1}
    assert stats.resolvers_in_progress == {"crossref": 1, "file": 1, "http": 1}
    assert (stats.delayed, stats.expired_leases, stats.attempts) == (2, 3, 5)
    assert stats.oldest_queued_age_s == 35


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), ["a0", "a1", "a2"]),
        (Filter(category="input"), ["a0", "a1"]),
        (Filter(category="timeout"), []),
        (Filter(artifact_ids=["a1", "a3", "missing", "\0", "\ud800"]), ["a1"]),
        (Filter(artifact_ids=[]), []),
        (Filter(resolver="file", host=""), ["a0", "a1", "a2"]),
        (Filter(batch="2024-05-01-0001"), []),
    ],
)
def test_failures_are_found_and_retried_by_the_same_filter(
    failed: Queue, wanted: Filter, expected: list[str]
) -> None:
    """A retry takes what is listed; a dry run takes nothing."""
    listed = [found.artifact_id for found in failed.failures(wanted)]
    would = failed.retry_failed(NOW + 1, wanted, dry_run=True)
    untouched = [found.artifact_id for found in failed.failures()]
    did = failed.retry_failed(NOW + 1, wanted)

    assert listed == expected
    assert would == did
    assert did.count == len(expected)
    assert untouched == ["a0", "a1", "a2"]
    assert [lease.artifact.artifact_id for lease in failed.lease("worker", 9, NOW + 1)] == expected


def test_a_retry_has_one_more_attempt_or_all_again(failed: Queue) -> None:
    """The last error stays until the artifact ends again."""
    failed.retry_failed(NOW, Filter(artifact_ids=["a0"]))
    failed.retry_failed(NOW, Filter(artifact_ids=["a1"]), reset_attempts=True)

    kept, reset = failed.lease("worker", 2, NOW)

    assert (kept.artifact.attempts, reset.artifact.attempts) == (2, 1)
    assert kept.artifact.last_error == reset.artifact.last_error == GONE
    assert failed.fail_and_retry(kept.token, BUSY, NOW)
    assert [found.artifact_id for found in failed.failures()] == ["a0", "a2"]


def test_a_retry_lets_the_batches_run_again(failed: Queue, ledger: Ledger) -> None:
    """The sensor reads revisions."""
    assign_batches(ledger, BatchLimits(max_documents=2), NOW)
    before = ledger.batches()

    retried = failed.retry_failed(NOW, Filter(artifact_ids=["a0", "a1"]))

    after = ledger.batches()
    assert retried.batches == {"2024-05-01-0001"}
    assert after["2024-05-01-0001"] > max(before.values())
    assert after["2024-05-01-0002"] == before["2024-05-01-0002"]


def test_artifacts_can_be_read_page_by_page(queue: Queue) -> None:
    """In the order they were queued."""
    queue.enqueue(some(5), NOW)

    first = queue.find(Filter(state="queued"), limit=2)
    second = queue.find(Filter(state="queued"), limit=9, after_seq=first[-1].seq)

    assert [found.artifact_id for found in first + second] == ["a0", "a1", "a2", "a3", "a4"]
    assert queue.get("missing") is None
