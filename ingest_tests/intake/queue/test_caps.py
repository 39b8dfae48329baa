"""Limits per host and resolver, and the artifacts they must not block."""

import tempfile
import threading
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.intake import schema
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.artifacts import NewArtifact
from ingest_assets.intake.queue.lease_order import FreeLeases, choose
from ingest_assets.intake.queue.queue import Filter, Queue
from ingest_assets.settings.intake import QueueOptions
from ingest_tests.intake.queue.conftest import DONE, NOW, MakeQueue, artifact, some
from ingest_tests.intake.queue.ends import ack


def leased(queue: Queue, limit: int = 100, now: float = NOW) -> list[str]:
    """Return the ids of what can be leased now."""
    return [lease.artifact.artifact_id for lease in queue.lease("worker", limit, now)]


def test_a_host_has_no_more_leases_than_its_cap(make_queue: MakeQueue) -> None:
    """Over all workers; each lease that ends allows another."""
    queue = make_queue(max_per_host=3)
    queue.enqueue([*some(5, "a.org"), *some(2, "A.org.", first=5)], NOW)

    first = queue.lease("one", 2, NOW)
    second = leased(queue)
    full = leased(queue)
    ack(queue, first[0].token, DONE, NOW)
    third = leased(queue)

    assert second == ["a2"]
    assert full == []
    assert third == ["a3"]


def test_a_resolver_has_no_more_leases_than_its_cap(make_queue: MakeQueue) -> None:
    """Over all its hosts; a resolver without a setting has no limit."""
    queue = make_queue(max_per_host=2, max_per_resolver={"crossref": 3})
    hosts = ["a.org", "b.org", "c.org"]
    queue.enqueue([artifact(n, hosts[n % 3], resolver="crossref") for n in range(6)], NOW)
    queue.enqueue([artifact(n, hosts[n % 3]) for n in range(6, 12)], NOW)

    assert leased(queue) == ["a0", "a1", "a2", "a6", "a7", "a8"]


def test_files_have_no_limit_per_host(make_queue: MakeQueue) -> None:
    """Their resolver can have a limit."""
    make_queue(max_per_host=1).enqueue(some(5), NOW)

    assert leased(make_queue(max_per_host=1, max_per_resolver={"file": 4})) == ["a0", "a1", "a2", "a3"]


def test_an_expired_lease_allows_another(make_queue: MakeQueue) -> None:
    """In the same call that finds it expired."""
    queue = make_queue(max_per_host=1)
    queue.enqueue(some(2, "a.org"), NOW)
    leased(queue)

    assert leased(queue, now=NOW + 600) == ["a1"]


def test_a_full_host_with_ten_thousand_artifacts_blocks_no_other(make_queue: MakeQueue) -> None:
    """Others are leased in order, and it gets its next turn when a lease ends."""
    queue = make_queue(max_per_host=2)
    queue.enqueue(some(10_000, "full.org"), NOW)
    queue.enqueue([artifact(20_000 + n, f"h{n % 7}.org") for n in range(30)], NOW)

    first = leased(queue, 5)
    second = leased(queue, 5)

    assert first == ["a0", "a1", "a20000", "a20001", "a20002"]
    assert second == ["a20003", "a20004", "a20005", "a20006", "a20007"]


def test_concurrent_lease_calls_respect_the_caps(make_queue: MakeQueue, ledger: Ledger) -> None:
    """Otherwise both would count the same leases and together exceed the limit."""
    queue = make_queue(max_per_host=2)
    queue.enqueue(some(5, "a.org"), NOW)
    found: list[list[str]] = []
    other = threading.Thread(target=lambda: found.append(leased(queue)))

    with ledger.database.begin("lease") as connection:
        other.start()
        other.join(0.5)
        waited = other.is_alive()
        first = schema.artifacts.c.artifact_id == "a0"
        held = {"state": "in_progress", "lease_token": "another's", "lease_expires": NOW + 600}
        connection.execute(schema.artifacts.update().where(first).values(**held))
    other.join(30)

    assert waited
    assert found == [["a1"]]


lanes = st.tuples(st.sampled_from(["", "a.org", "b.org", "c.org"]), st.sampled_from(["x", "y"]))
entries = st.lists(st.tuples(lanes, st.integers(-3, 1)), max_size=40)


@given(entries, st.integers(1, 6), st.integers(1, 4), st.none() | st.integers(1, 5), st.integers(0, 5))
def test_any_queue_is_leased_in_order_within_the_caps(
    line: list[tuple[tuple[str, str], int]], limit: int, per_host: int, per_x: int | None, held: int
) -> None:
    """Reading lanes gives the same result as reading the whole queue."""
    options = QueueOptions(max_per_host=per_host, max_per_resolver={} if per_x is None else {"x": per_x})
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.sqlite")
        queue = Queue(ledger.database, options)
        queue.enqueue(
            (
                artifact(n, host, resolver=resolver, not_before=NOW + late)
                for n, ((host, resolver), late) in enumerate(line)
            ),
            NOW,
        )
        queue.lease("another", held, NOW)
        rows = queue.find(Filter())
        with ledger.database.connect() as connection:
            chosen = choose(connection, FreeLeases.now(connection, options), limit, NOW, min_head=1)
        ledger.close()

    hosts = [row.host for row in rows if row.state == "in_progress" and row.host]
    resolvers = [row.resolver for row in rows if row.state == "in_progress"]
    expected = []
    for row in sorted(rows, key=lambda row: (row.not_before, row.seq)):
        has_room = hosts.count(row.host) < per_host and (
            row.resolver != "x" or per_x is None or resolvers.count("x") < per_x
        )
        if row.state == "queued" and row.not_before <= NOW and has_room and len(expected) < limit:
            expected.append(row.seq)
            hosts += [row.host] if row.host else []
            resolvers.append(row.resolver)
    assert chosen == expected


def test_the_host_of_a_url_has_one_spelling() -> None:
    """Case, port and a dot at the end do not make another server."""
    spelt = ["http://A.org/x", "https://a.ORG:8443/", "https://a.org./y?z"]

    assert {NewArtifact(artifact_id="a", url=url).host for url in spelt} == {"a.org"}
