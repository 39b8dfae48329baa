"""Two calls at the same time, made certain by stopping one half way."""

import threading

from ingest_assets.intake import schema
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.queue import Filter, Queue
from ingest_assets.settings.intake import QueueOptions
from ingest_tests.intake.postgres import Postgres
from ingest_tests.intake.queue.conftest import BUSY, NOW, some


def test_a_failure_during_the_own_heartbeat_counts(queue: Queue, ledger: Ledger) -> None:
    """The heartbeat comes from another thread: a row it locks is not a lost one."""
    queue.enqueue(some(1), NOW)
    (lease,) = queue.lease("worker", 1, NOW)
    results: list[bool] = []
    worker = threading.Thread(target=lambda: results.append(queue.fail_and_retry(lease.token, BUSY, NOW)))

    with ledger.database.begin() as connection:
        connection.execute(schema.artifacts.update().values(lease_expires=NOW + 900))
        worker.start()
        worker.join(0.3)
    worker.join(30)

    found = queue.get("a0")
    assert found is not None
    assert results == [True]
    assert (found.state, found.last_error) == ("queued", BUSY)


def test_a_lease_does_not_wait_for_an_ack_on_postgresql(postgres: Postgres) -> None:
    """An expired row that is being acked is left to its worker (`SKIP LOCKED`)."""
    ledger = Ledger(postgres.fresh_url())
    queue = Queue(ledger.database, QueueOptions())
    queue.enqueue(some(3), NOW)
    (late,) = queue.lease("late", 1, NOW)
    acked = {"state": "done", "lease_token": None}

    with ledger.database.begin() as connection:
        held = schema.artifacts.c.lease_token == late.token
        connection.execute(schema.artifacts.update().where(held).values(**acked))
        during = queue.lease("next", 9, NOW + 700)

    states = {found.artifact_id: found.state for found in queue.find(Filter())}
    assert [lease.artifact.artifact_id for lease in during] == ["a1", "a2"]
    assert states == {"a0": "done", "a1": "in_progress", "a2": "in_progress"}
    ledger.close()
