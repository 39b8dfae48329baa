"""Several processes and threads on one queue: limits hold, no work is done twice, a stop loses nothing."""

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

from ingest_assets.intake.batches import assign_batches
from ingest_assets.intake.queue.artifacts import NewArtifact
from ingest_assets.intake.queue.queue import Filter
from ingest_assets.settings.intake import BatchLimits, QuotaOptions
from ingest_tests.intake.acquire.conftest import Intake
from ingest_tests.intake.fetch.site import PDF, Site, Visit

WORKER = "ingest_tests.intake.acquire.worker"
MAX_LEASE_WAIT_S = 15.0  # less than the request timeout; only a limit that is too low causes such a wait


class Crowd:
    """Counts how many requests a site answers at the same time.

    A request stays open until `company` are open or no more can come, so that the result does not depend on
    the speed of the machine, and then for `seconds`, in which one too many could come."""

    def __init__(self, seconds: float, company: int = 1, guests: int = 0) -> None:
        self._seconds, self._company, self._guests = seconds, company, guests
        self._changed = threading.Condition()
        self._inside = self._came = self._full = 0
        self.most = 0
        self.in_company = 0
        self.served: Counter[str] = Counter()

    def __call__(self, visit: Visit) -> None:
        with self._changed:
            self._came += 1
            self._inside += 1
            self.most = max(self.most, self._inside)
            full_before = self._full
            if self._inside >= self._company:
                self._full += 1
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._full > full_before or self._came >= self._guests > 0, MAX_LEASE_WAIT_S
            )
            self.in_company += self._full > full_before
        time.sleep(self._seconds)
        with self._changed:
            self.served[visit.path] += 1
            self._inside -= 1
        visit.reply(200, PDF + visit.path.encode())


def queued(intake: Intake, site: Site, handler: Crowd, count: int) -> str:
    """Return that many pages of the site in one batch."""
    urls = [site.page(f"/{number}.pdf", handler) for number in range(count)]
    new = [NewArtifact(artifact_id=url, url=url) for url in urls]
    intake.queue.enqueue(new, time.time())
    (batch,) = assign_batches(intake.ledger, BatchLimits(), time.time())
    return batch


@pytest.mark.slow
def test_four_processes_never_ask_one_host_for_more_than_three_documents_at_a_time(
    intake_on_each: Intake, ledger_is_at: Path | str, site: Site
) -> None:
    """And three most of the time; each document is fetched once."""
    count = 45
    crowd = Crowd(0.1, company=3, guests=count)
    batch = queued(intake_on_each, site, crowd, count)
    home = str(intake_on_each.layout.home)
    line = [sys.executable, "-m", WORKER, str(ledger_is_at), home, batch, "3"]
    workers = [
        subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    ends = [worker.communicate("\n", timeout=100)[0] for worker in _started(workers)]

    assert set(crowd.served.values()) == {1}
    assert len(crowd.served) == count
    assert sum(map(int, ends)) == count
    assert crowd.most == 3
    assert crowd.in_company > 0.5 * count
    assert intake_on_each.queue.stats(time.time()).states["done"] == count


def _started(workers: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    """Start all before the first is waited for."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    return workers


def test_two_runs_of_one_batch_share_its_work(intake_on_each: Intake, site: Site) -> None:
    """Each document is fetched by one of them."""
    crowd = Crowd(0.01)
    batch = queued(intake_on_each, site, crowd, 20)
    reports = []

    def run() -> None:
        reports.append(intake_on_each.run(batch, clock=time.time))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(crowd.served.values()) == {1}
    assert sum(report.ended["done"] for report in reports) == 20


def test_a_quota_limits_the_requests_of_a_resolver(intake: Intake, site: Site) -> None:
    """Three at once, the others when the bucket has refilled; every wait is counted."""
    intake.queue_options = {"quotas": {"http": QuotaOptions(rate=3, per_seconds=0.6)}}
    batch = queued(intake, site, Crowd(0), 9)

    began_s = time.monotonic()
    report = intake.run(batch, clock=time.time)

    assert report.ended == {"done": 9}
    assert time.monotonic() - began_s >= 1.0
    assert intake.measures.totals().throttled > 0


def test_a_long_wait_for_a_quota_releases_the_rest(intake: Intake, site: Site) -> None:
    """A run does not wait for an hour."""
    intake.queue_options = {"quotas": {"http": QuotaOptions(rate=2, per_seconds=3600)}}
    crowd = Crowd(0)
    batch = queued(intake, site, crowd, 5)

    report = intake.run(batch, clock=time.time)

    waiting = [a for a in intake.queue.find(Filter()) if a.state == "queued"]
    assert report.ended == {"done": 2, "released": 3}
    assert [a.attempts for a in waiting] == [0, 0, 0]
    assert min(a.not_before for a in waiting) > time.time() + 1000
    assert len(crowd.served) == 2


def test_an_interrupted_run_releases_its_leases(intake: Intake, site: Site) -> None:
    """No attempt is lost, no lease remains, and received bytes are continued."""
    body = PDF * 3000
    begun = threading.Event()

    def slow(visit: Visit) -> None:
        if visit.number > 1:
            visit.serve(body, '"v1"')
            return
        visit.begin(200, content_length=len(body), etag='"v1"')
        visit.send(body[: len(body) // 2])
        begun.set()
        for start in range(len(body) // 2, len(body), 4096):
            time.sleep(0.02)
            visit.send(body[start : start + 4096])

    batch = intake.add("a", url=site.page("/a.pdf", slow))
    acquirer = intake.acquirer()
    begun_then_stopped = threading.Thread(target=lambda: (begun.wait(10), acquirer.stop()))
    begun_then_stopped.start()
    report = acquirer.run(batch)

    assert report.ended == {"released": 1}
    assert (intake["a"].state, intake["a"].attempts, intake["a"].leased_by) == ("queued", 0, None)

    intake.run(batch)
    assert intake["a"].state == "done"
    assert intake["a"].detail["resumed_from_bytes"] > 0


@pytest.mark.slow
def test_a_lease_is_kept_alive_for_as_long_as_the_download_takes(intake: Intake, site: Site) -> None:
    """Heartbeats: no other worker gets the artifact, although its lease would have expired long ago."""
    times = iter(range(0, 10_000_000, 10))  # the clock moves ten seconds with every call

    def slow(visit: Visit) -> None:
        visit.begin(200, content_length=4)
        for piece in (b"a", b"b", b"c", b"d"):
            time.sleep(2.0)
            visit.send(piece)

    intake.queue_options = {"heartbeat_seconds": 5, "lease_ttl_seconds": 30}
    batch = intake.add("a", url=site.page("/a", slow))
    expires = []

    def watch() -> None:
        while not expires or len(set(expires)) < 2:
            time.sleep(0.2)
            expires.append(intake["a"].lease_expires)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    report = intake.run(batch, clock=lambda: intake.now + next(times))

    watching.join(10)
    assert report.ended == {"done": 1}
    assert len(set(expires) - {None}) >= 2


def test_a_worker_whose_lease_was_given_to_another_changes_nothing(intake: Intake, site: Site) -> None:
    """It is too late: the other worker's bytes count."""
    taken = threading.Event()
    go_on = threading.Event()

    def page(visit: Visit) -> None:
        if visit.number == 1:
            taken.set()
            go_on.wait(10)
            visit.reply(200, b"# Stale\n")
        else:
            visit.reply(200, b"# Fresh\n")

    batch = intake.add("a", url=site.page("/a", page))
    reports = []
    stale = threading.Thread(target=lambda: reports.append(intake.run(batch)))
    stale.start()
    assert taken.wait(10)
    later = intake.now + 601
    intake.run(batch, clock=lambda: later)
    go_on.set()
    stale.join()

    assert reports[0].ended == {"lost": 1}
    assert (intake["a"].state, intake["a"].attempts) == ("done", 2)
    assert intake["a"].size_bytes == len(b"# Fresh\n")


def test_a_ledger_that_breaks_ends_the_acquisition_with_its_error(intake: Intake, site: Site) -> None:
    """Threads must not end silently."""
    batch = intake.add("a", url=site.page("/a", lambda v: v.reply(200, PDF)))
    with intake.ledger.begin() as connection:
        connection.exec_driver_sql("DROP TABLE documents")

    with pytest.raises(sa.exc.OperationalError, match="no such table: documents"):
        intake.run(batch)
