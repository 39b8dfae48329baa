"""A worker process: leases, works for a moment, acks, and records what it did.

Run as `python -m ingest_tests.intake.queue.drainer WHERE DIARY JSON`. A line of the diary is written before
and after every ack, so that a worker killed between the two is seen, too.
"""

import json
import random
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from ingest_assets.intake.ledger import Ledger
from ingest_assets.intake.queue.artifacts import Ending, Lease
from ingest_assets.intake.queue.queue import Queue
from ingest_assets.settings.intake import QueueOptions
from ingest_tests.intake.queue.ends import ack_all


@dataclass(frozen=True)
class Job:
    """What a worker does."""

    seed: int = 0
    lease_limit: int = 40
    ttl_s: float = 600.0
    work_s: float = 0.0
    acks_at_once: int = 10
    max_per_host: int = 1_000_000
    max_per_resolver: int | None = None

    def as_json(self) -> str:
        """Return the job for the command line."""
        return json.dumps(asdict(self))

    def options(self) -> QueueOptions:
        """Return the limits; many leases expire here, so attempts are not limited tightly."""
        caps = {} if self.max_per_resolver is None else {"http": self.max_per_resolver}
        return QueueOptions(max_per_host=self.max_per_host, max_per_resolver=caps, max_job_attempts=100)


def main(where: str, diary: str, job: Job) -> None:
    """Drain the queue until nothing is queued or in progress."""
    ledger = Ledger(where if "://" in where else Path(where))
    queue = Queue(ledger.database, job.options())
    rng = random.Random(job.seed)
    with Path(diary).open("w", buffering=1) as lines:
        lines.write("ready\n")
        while True:
            leases = queue.lease(f"worker {job.seed}", job.lease_limit, time.time(), ttl_s=job.ttl_s)
            if not leases and _is_drained(queue):
                break
            if not leases:
                time.sleep(0.05)
            _work(queue, leases, job, rng, lines)
        lines.write("drained\n")


def _is_drained(queue: Queue) -> bool:
    states = queue.stats(time.time()).states
    return not states["queued"] and not states["in_progress"]


def _work(queue: Queue, leases: list[Lease], job: Job, rng: random.Random, lines: TextIO) -> None:
    while leases:
        count = rng.randint(1, job.acks_at_once)
        some, leases = leases[:count], leases[count:]
        names = {lease.token: lease.artifact.artifact_id for lease in some}
        started = time.monotonic()
        time.sleep(rng.uniform(0, job.work_s))
        lines.write(f"acking {json.dumps(list(names.values()))}\n")
        ended = time.monotonic()
        lost = ack_all(queue, names, Ending("done"), time.time())
        acked = [name for token, name in names.items() if token not in lost]
        hosts = [lease.artifact.host for lease in some]
        lines.write(f"acked {json.dumps([acked, started, ended, hosts])}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Job(**json.loads(sys.argv[3])))
