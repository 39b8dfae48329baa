"""Released failures: removed from the tables and the queue, and noticed by the sensor and the schedule."""

import threading
import time
from pathlib import Path

import dagster as dg
import pytest

from ingest_assets.app.failures import read_inbox, release
from ingest_assets.app.graph import stages_between
from ingest_assets.app.home import Home
from ingest_assets.intake.queue.artifacts import Ending, Failure, NewArtifact
from ingest_assets.storage.locks import FileLock
from ingest_tests.defs.test_automation import _look as look
from ingest_tests.defs.test_automation import _night as night
from ingest_tests.intake.queue.ends import ack
from ingest_tests.runs import run_batches

pytestmark = pytest.mark.graph  # runs the whole graph many times

ALL = stages_between("documents", "embeddings")


@pytest.fixture
def failed(home: Home, watched: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A batch in which all is done except two empty files."""
    monkeypatch.setenv("INGEST_AUTOMATION__SETTLE_SECONDS", "0")
    for name in ("empty-1.md", "empty-2.md"):
        (watched / name).touch()
    home.scan()
    run_batches(home, ALL, {}, reason="test")
    return home


def test_the_sensor_requests_a_batch_with_a_released_failure_once(failed: Home, instance: dg.DagsterInstance):
    """Known failures need no run; a released one does, with a new run key."""
    before = look(instance)
    release(failed, read_inbox(failed)[:1])

    after = look(instance, before.cursor)
    again = look(instance, after.cursor)

    assert not before.run_requests
    assert [request.partition_key for request in after.run_requests] == list(failed.ledger.batches())
    assert not again.run_requests


def test_the_schedule_finds_it_too_and_a_run_completes_it(failed: Home, instance: dg.DagsterInstance):
    """By the predicate that all parts use."""
    quiet = night(instance)
    release(failed, read_inbox(failed)[:1])
    requests = night(instance)
    report = run_batches(failed, ALL, {}, reason="test")

    assert isinstance(quiet, dg.SkipReason)
    assert len(requests) == 1
    assert (report.stages["doctags"].scheduled, report.stages["doctags"].failed) == (1, 1)
    assert len(read_inbox(failed)) == 2
    assert isinstance(night(instance), dg.SkipReason)


def test_only_failures_that_still_exist_count_as_released(failed: Home):
    """A run may have removed one in between; rows and other failures are not touched."""
    first, second = read_inbox(failed)
    rows = failed.tables("doctags").records

    assert release(failed, [first]) == [first]
    assert release(failed, [first]) == []
    assert read_inbox(failed) == [second]
    assert failed.tables("doctags").records == rows


def test_a_release_waits_for_the_run_that_writes_the_table(failed: Home):
    """And names it; two writers would lose one of the changes."""
    first, _ = read_inbox(failed)
    path = failed.layout.lock("doctags", first.batch)
    running, waits = FileLock(path), threading.Event()
    running.acquire()
    told: list[Path] = []
    releasing = threading.Thread(
        target=lambda: release(failed, [first], lambda held: (told.append(held), waits.set())), daemon=True
    )
    releasing.start()

    assert waits.wait(10)
    while_running = len(read_inbox(failed))
    running.release()
    releasing.join(10)

    assert (told, while_running) == ([path], 2)
    assert len(read_inbox(failed)) == 1


def test_a_released_artifact_is_queued_with_all_its_attempts_and_its_batch_is_due(
    home: Home, instance: dg.DagsterInstance
):
    """A queued artifact is not a failure, whatever the tables contain."""
    home.queue.enqueue([NewArtifact(id="paper", url="http://example.org/p.pdf")], time.time())
    (batch,) = home.assign_batches()
    (lease,) = home.queue.lease("somebody", 1, time.time(), batch=batch)
    why = Failure("provider", "E_FETCH_REFUSED", "example.org says 403.", retryable=False)
    ack(home.queue, lease.token, Ending("error", failure=why), time.time())
    run_batches(home, ALL, {}, reason="test")
    quiet = look(instance)

    (failure,) = read_inbox(home)
    release(home, [failure])

    artifact = home.queue.get("paper")
    assert artifact is not None
    assert (artifact.state, artifact.attempts) == ("queued", 0)
    assert read_inbox(home) == []
    assert list(home.tables("documents").failures) == ["paper"]
    assert not quiet.run_requests
    (request,) = look(instance, quiet.cursor).run_requests
    assert request.partition_key == batch
