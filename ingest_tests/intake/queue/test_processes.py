"""Many processes on one queue: nothing twice, nothing lost, and never above the limits."""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.queue import Enqueued, Queue
from ingest_assets.settings.intake import QueueOptions
from ingest_tests.conftest import clean_environment
from ingest_tests.intake.queue.conftest import artifact, some
from ingest_tests.intake.queue.drainer import Job

LIMIT_S = 240.0
ENQUEUER = """
import sys, time
from pathlib import Path
from ingest_assets.intake.queue.artifacts import NewArtifact
from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.queue import Queue
from ingest_assets.settings.intake import QueueOptions
where = sys.argv[1]
ledger = Ledger(where if "://" in where else Path(where))
order = range(3000) if sys.argv[2] == "up" else range(2999, -1, -1)
given = [NewArtifact(artifact_id=f"a{n}", path=f"/files/{n}.md") for n in order]
print("ready", flush=True)
sys.stdin.readline()
print(len(Queue(ledger.database, QueueOptions()).enqueue(given, time.time()).new))
"""


class Crew:
    """Workers, each with a diary."""

    def __init__(self, where: Path | str, folder: Path, job: Job, size: int) -> None:
        self.diaries = [folder / f"diary-{number}" for number in range(size)]
        module = "ingest_tests.intake.queue.drainer"
        self.workers = [
            subprocess.Popen(
                [sys.executable, "-m", module, str(where), diary, replace(job, seed=number).as_json()],
                env=clean_environment(),
            )
            for number, diary in enumerate(self.diaries)
        ]

    def wait_until_ready(self) -> None:
        """Wait until all have started."""
        give_up = time.monotonic() + LIMIT_S
        while not all(diary.is_file() and diary.read_text() for diary in self.diaries):
            assert time.monotonic() < give_up
            time.sleep(0.05)

    def wait(self, dead: Sequence[int] = ()) -> None:
        """Wait until all living workers have drained the queue."""
        for number, worker in enumerate(self.workers):
            assert worker.wait(LIMIT_S) == (-9 if number in dead else 0)

    def end(self) -> None:
        """Kill all remaining processes."""
        for worker in self.workers:
            worker.kill()
            worker.wait()

    def entries(self, word: str) -> list[tuple[int, list]]:
        """Return the diary entries of a kind with their worker; skip a line cut off by a kill."""
        found = []
        for number, diary in enumerate(self.diaries):
            whole = diary.read_text().split("\n")[:-1]
            found += [
                (number, json.loads(line.removeprefix(word))) for line in whole if line.startswith(f"{word} ")
            ]
        return found


@pytest.mark.chaos
@pytest.mark.parametrize("kills", [0, 3])
def test_every_artifact_is_acked_exactly_once(ledger_is_at: Path | str, tmp_path: Path, kills: int) -> None:
    """10,000 artifacts, 8 processes; three of them killed at random moments, or none."""
    ledger = Ledger(ledger_is_at)
    queue = Queue(ledger.database, QueueOptions())
    queue.enqueue(some(10_000), time.time())
    crew = Crew(ledger_is_at, tmp_path, Job(ttl_s=3.0 if kills else 600.0), 8)
    dead = random.Random(5).sample(range(8), kills)
    try:
        crew.wait_until_ready()
        for number in dead:
            time.sleep(random.uniform(0.1, 0.8))
            crew.workers[number].kill()
        crew.wait(dead)
    finally:
        crew.end()

    acked = Counter(name for _, entry in crew.entries("acked") for name in entry[0])
    unsure = {name for number, names in crew.entries("acking") if number in dead for name in names}
    everything = {f"a{number}" for number in range(10_000)}
    assert max(acked.values()) == 1
    assert everything - set(acked) <= unsure  # killed after the ack and before its line
    assert len(everything - set(acked)) <= 10 * kills
    assert queue.stats(time.time()).states == {
        "queued": 0,
        "in_progress": 0,
        "done": 10_000,
        "skipped": 0,
        "error": 0,
    }


def most_at_once(crew: Crew) -> dict[str, int]:
    """Return by host how many artifacts were worked on at the same time, from lease to ack."""
    moments: list[tuple[float, int, str]] = []
    for _, (names, started, ended, hosts) in crew.entries("acked"):
        assert len(names) == len(hosts)
        for host in hosts:
            moments += [(started, 1, host), (ended, -1, host)]
    now, most = Counter[str](), Counter[str]()
    for _, change, host in sorted(moments):
        for key in (host, "all"):
            now[key] += change
            most[key] = max(most[key], now[key])
    return dict(most)


@pytest.mark.slow
def test_caps_hold_over_processes(ledger_is_at: Path | str, tmp_path: Path) -> None:
    """Four processes that lease all they can: 3 per host, 7 per resolver, and both are reached."""
    hosts = ["a.org", "b.org", "c.org"]
    ledger = Ledger(ledger_is_at)
    queue = Queue(ledger.database, QueueOptions())
    queue.enqueue((artifact(n, hosts[n % 3]) for n in range(240)), time.time())
    job = Job(lease_limit=2, work_s=0.04, acks_at_once=2, max_per_host=3, max_per_resolver=7)
    crew = Crew(ledger_is_at, tmp_path, job, 4)
    seen: Counter[str] = Counter()
    try:
        while any(worker.poll() is None for worker in crew.workers):
            stats = queue.stats(time.time())
            held = stats.hosts_in_progress | {"all": stats.states["in_progress"]}
            seen |= Counter(held)
            time.sleep(0.01)
        crew.wait()
    finally:
        crew.end()

    worked = most_at_once(crew)
    assert max(worked[host] for host in hosts) <= 3
    assert worked["all"] <= 7
    assert max(seen[host] for host in hosts) == 3
    assert seen["all"] <= 7


def test_concurrent_imports_add_every_artifact_once(ledger_is_at: Path | str) -> None:
    """One reads the list forwards and one backwards: no row twice, and no deadlock where they meet."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", ENQUEUER, str(ledger_is_at), way],
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for way in ("up", "down", "up")
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    new = [int(process.communicate(timeout=120)[0]) for process in started]
    queue = Queue(Ledger(ledger_is_at).database, QueueOptions())
    assert sum(new) == queue.stats(time.time()).total == 3000
    assert queue.enqueue(some(3000), time.time()) == Enqueued([], [f"a{n}" for n in range(3000)])
