"""The contract of every queue, on each database."""

import dataclasses

import pytest

from ingest_assets.intake.queue.artifacts import Ending, Failure, Lease
from ingest_assets.intake.queue.queue import Filter, Queue
from ingest_tests.intake.queue.conftest import BUSY, DONE, GONE, NOW, MakeQueue, artifact, some
from ingest_tests.intake.queue.ends import ack


def ids(leases: list[Lease]) -> list[str]:
    """Return the ids of leased artifacts, in order."""
    return [lease.artifact.artifact_id for lease in leases]


def lease_one(queue: Queue, now: float = NOW) -> Lease:
    """Lease the next artifact; there must be one."""
    (lease,) = queue.lease("worker", 1, now)
    return lease


def state(queue: Queue, artifact_id: str = "a0") -> str:
    """Return the state of one artifact."""
    found = queue.get(artifact_id)
    assert found is not None
    return found.state


def test_an_artifact_is_enqueued_once(queue: Queue) -> None:
    """A known id keeps its values, also if it is enqueued twice at once or with another location."""
    first = queue.enqueue([artifact(1, meta={"a": 1}), artifact(2), artifact(1)], NOW)
    again = queue.enqueue([artifact(3), artifact(1, "example.org"), artifact(2)], NOW + 5)

    known = queue.get("a1")
    assert (first.new, first.known) == (["a1", "a2"], ["a1"])
    assert (again.new, again.known) == (["a3"], ["a1", "a2"])
    assert known is not None
    assert (known.path, known.url, known.meta, known.enqueued_at) == ("/files/1.md", None, {"a": 1}, NOW)


def test_artifacts_are_leased_in_order_and_once(queue: Queue) -> None:
    """Two workers never hold the same artifact."""
    queue.enqueue(some(5), NOW)

    assert ids(queue.lease("one", 2, NOW)) == ["a0", "a1"]
    assert ids(queue.lease("two", 2, NOW)) == ["a2", "a3"]
    assert ids(queue.lease("one", 2, NOW)) == ["a4"]
    assert ids(queue.lease("two", 2, NOW)) == []
    assert queue.lease("two", 0, NOW) == []


def test_a_lease_has_the_artifact_and_the_deadline(make_queue: MakeQueue) -> None:
    """It contains everything a worker needs."""
    queue = make_queue(lease_ttl_seconds=90)
    queue.enqueue([artifact(7, "Example.ORG.", resolver="crossref", meta={"title": "é\0\ud800"})], NOW)

    lease = lease_one(queue)

    leased = lease.artifact
    assert lease.expires_at == leased.lease_expires == NOW + 90
    assert (leased.url, leased.resolver, leased.host) == ("https://Example.ORG./7", "crossref", "example.org")
    assert leased.meta == {"title": "é\0\ud800"}
    assert (leased.state, leased.attempts, leased.leased_by, leased.leased_at) == (
        "in_progress",
        1,
        "worker",
        NOW,
    )
    assert queue.get("a7") == leased


def test_an_earlier_time_is_an_earlier_place(queue: Queue) -> None:
    """`not_before` can move an artifact forward or delay it."""
    queue.enqueue([artifact(1), artifact(2, not_before=NOW + 60), artifact(3, not_before=0)], NOW)

    assert ids(queue.lease("worker", 9, NOW)) == ["a3", "a1"]
    assert ids(queue.lease("worker", 9, NOW + 60)) == ["a2"]


def test_an_ended_artifact_stays_as_it_ended(queue: Queue) -> None:
    """With what the server sent."""
    queue.enqueue(some(3), NOW)
    one, two, three = queue.lease("worker", 3, NOW)

    assert ack(queue, one.token, Ending("done", content_hash="h", etag='"x"', last_modified="Mon"), NOW + 1)
    assert ack(queue, two.token, Ending("skipped", detail={"reason": "same bytes"}), NOW + 2)
    assert ack(queue, three.token, Ending("error", GONE), NOW + 3)

    done, skipped, error = queue.find(Filter())
    assert (done.state, done.content_hash, done.etag, done.last_modified) == ("done", "h", '"x"', "Mon")
    assert (skipped.state, skipped.detail) == ("skipped", {"reason": "same bytes"})
    assert (error.state, error.last_error, error.finished_at) == ("error", GONE, NOW + 3)
    assert (done.last_error, done.leased_by, done.lease_expires) == (None, None, None)
    assert queue.lease("worker", 9, NOW + 1e6) == []


def test_only_an_error_has_a_failure() -> None:
    """An error without a reason is not useful."""
    with pytest.raises(ValueError, match="failure"):
        Ending("error")
    with pytest.raises(ValueError, match="failure"):
        Ending("done", GONE)


@pytest.mark.parametrize("call", ["ack", "fail", "heartbeat", "release"])
@pytest.mark.parametrize("holder", ["next worker", "acked", "never leased"])
def test_a_lost_token_changes_nothing(queue: Queue, call: str, holder: str) -> None:
    """A worker whose lease expired must not undo the work of the next."""
    queue.enqueue([artifact(0)], NOW)
    stale = lease_one(queue).token
    if holder == "next worker":
        lease_one(queue, NOW + 601)
    elif holder == "acked":
        ack(queue, stale, DONE, NOW + 1)
    else:
        stale = "made up"
    before = queue.get("a0")
    calls = {
        "ack": lambda: ack(queue, stale, Ending("skipped", content_hash="stale"), NOW + 700),
        "fail": lambda: queue.fail_and_retry(stale, BUSY, NOW + 700),
        "heartbeat": lambda: queue.heartbeat(stale, NOW + 700),
        "release": lambda: queue.release(stale, NOW + 700),
    }

    assert calls[call]() is False
    assert queue.get("a0") == before


def test_a_heartbeat_extends_a_lease(queue: Queue) -> None:
    """For its full length from then on, and no longer."""
    queue.enqueue([artifact(0)], NOW)
    lease = lease_one(queue)

    assert queue.heartbeat(lease.token, NOW + 590)

    assert queue.lease("other", 1, NOW + 610) == []
    assert ids(queue.lease("other", 1, NOW + 1190)) == ["a0"]


def test_an_expired_lease_returns_to_the_end_of_the_queue(queue: Queue) -> None:
    """Its attempt counts; the error names the worker that stopped responding."""
    queue.enqueue(some(2), NOW)
    lease_one(queue)

    leases = queue.lease("other", 2, NOW + 600)

    again = leases[1].artifact
    assert ids(leases) == ["a1", "a0"]
    assert again.attempts == 2
    assert again.last_error is not None
    assert again.last_error.code == "E_LEASE_EXPIRED"
    assert "worker stopped responding (attempt 1 of 3); retrying" in again.last_error.message


def test_an_artifact_that_kills_its_workers_ends_in_error(queue: Queue) -> None:
    """Attempts count when they start, since a dead worker cannot count."""
    queue.enqueue([artifact(0)], NOW)
    for attempt in range(3):
        assert lease_one(queue, NOW + 600 * attempt).artifact.attempts == attempt + 1

    assert queue.lease("worker", 1, NOW + 1800) == []

    (poison,) = queue.failures()
    assert poison.last_error is not None
    assert (poison.state, poison.attempts, poison.finished_at) == ("error", 3, NOW + 1800)
    assert (poison.last_error.category, poison.last_error.code) == ("runtime", "E_ATTEMPTS_EXHAUSTED")
    assert not poison.last_error.retryable


def test_an_expired_lease_can_end_until_it_is_reclaimed(queue: Queue) -> None:
    """Finished work is not discarded for being late."""
    queue.enqueue([artifact(0)], NOW)
    lease = lease_one(queue)

    assert ack(queue, lease.token, DONE, NOW + 10_000)
    assert state(queue) == "done"


def test_waits_double_with_each_attempt(make_queue: MakeQueue) -> None:
    """And the last attempt is an error, with its own reason."""
    queue = make_queue(max_job_attempts=4)
    queue.enqueue([artifact(0)], NOW)
    now, waits = NOW, []
    for _ in range(3):
        assert queue.fail_and_retry(lease_one(queue, now).token, BUSY, now)
        waiting = queue.get("a0")
        assert waiting is not None
        assert (waiting.state, waiting.last_error) == ("queued", BUSY)
        waits.append(waiting.not_before - now)
        assert queue.lease("worker", 1, waiting.not_before - 0.001) == []
        now = waiting.not_before

    assert queue.fail_and_retry(lease_one(queue, now).token, BUSY, now)

    assert waits == [60, 120, 240]
    assert [(failed.state, failed.attempts, failed.last_error) for failed in queue.failures()] == [
        ("error", 4, BUSY)
    ]


def test_waits_have_a_random_part(make_queue: MakeQueue) -> None:
    """Artifacts that failed together are not retried together."""
    queue = make_queue(jitter_seconds=15)
    queue.enqueue(some(50), NOW)
    for lease in queue.lease("worker", 50, NOW):
        queue.fail_and_retry(lease.token, BUSY, NOW)

    waits = [found.not_before - NOW for found in queue.find(Filter())]

    assert len(set(waits)) == 50
    assert all(60 <= wait <= 75 for wait in waits)
    assert max(waits) - min(waits) > 10


@pytest.mark.parametrize(("asked", "waited"), [(5.0, 5.0), (0.0, 0.0), (-3.0, 0.0), (1e9, 86_400.0)])
def test_retry_after_replaces_the_backoff(queue: Queue, asked: float, waited: float) -> None:
    """Up to a day."""
    queue.enqueue([artifact(0)], NOW)

    queue.fail_and_retry(lease_one(queue).token, BUSY, NOW, retry_after_s=asked)

    found = queue.get("a0")
    assert found is not None
    assert found.not_before == NOW + waited


def test_a_permanent_failure_is_not_retried(queue: Queue) -> None:
    """`retryable` belongs to the failure."""
    queue.enqueue([artifact(0)], NOW)

    assert queue.fail_and_retry(lease_one(queue).token, GONE, NOW, retry_after_s=5)

    assert [(failed.attempts, failed.last_error) for failed in queue.failures()] == [(1, GONE)]


def test_an_artifact_can_have_its_own_max_attempts(queue: Queue) -> None:
    """Here only one."""
    queue.enqueue([artifact(0, max_attempts=1)], NOW)

    queue.fail_and_retry(lease_one(queue).token, BUSY, NOW)

    assert state(queue) == "error"


def test_a_released_lease_costs_no_attempt(queue: Queue) -> None:
    """When a worker stops, or a host is paused."""
    queue.enqueue(some(2), NOW)
    one, two = queue.lease("worker", 2, NOW)

    assert queue.release(one.token, NOW + 1)
    assert queue.release(two.token, NOW + 1, wait_s=30)

    assert [
        (lease.artifact.artifact_id, lease.artifact.attempts) for lease in queue.lease("x", 9, NOW + 2)
    ] == [("a0", 1)]
    assert ids(queue.lease("x", 9, NOW + 31)) == ["a1"]


@pytest.mark.parametrize("text", ["NUL \0 inside", "half a pair \ud800", "plain"])
def test_any_text_of_an_error_can_be_stored(queue: Queue, text: str) -> None:
    """Messages contain what broken servers and files send."""
    queue.enqueue([artifact(0)], NOW)
    (lease,) = queue.lease(f"worker {text}", 1, NOW)
    failure = dataclasses.replace(GONE, message=text)

    assert ack(queue, lease.token, Ending("error", failure, etag=text), NOW)

    found = queue.get("a0")
    assert found is not None
    assert found.last_error == failure
    assert found.etag == text.replace("\0", "\\x00").replace("\ud800", "\\ud800")


def test_a_failure_is_classified_by_the_type_of_its_error() -> None:
    """Not by words in its message."""
    unknown = Failure.of(ValueError("503"))

    assert (unknown.category, unknown.code, unknown.retryable) == ("unknown", "E_UNKNOWN", False)
