"""Items that kill their own process: each costs itself and a new process, and nothing else."""

import time

from ingest_assets.backends import ProcessBackend
from ingest_assets.core.items import Plan, StageOutcome, WorkItem
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.runner.workers import by_name

ITEMS = 200
ITEMS_PER_DEATH = 20
SECONDS_EACH = 0.02
WORKERS = 2
ROUNDS = 3


def measure(size: Size) -> list[Figure]:
    """Count the survivors, and compare the time with that of the good items alone."""
    count = size.of(ITEMS)
    good = [
        WorkItem(f"sleep-{n}", "f", meta={"seconds": SECONDS_EACH})
        for n in range(count)
        if n % ITEMS_PER_DEATH
    ]
    bad = [WorkItem(f"kill-{n}", "f") for n in range(0, count, ITEMS_PER_DEATH)]
    both = sorted(good + bad, key=lambda item: int(item.item_id.split("-")[1]))
    _run(good[:WORKERS])  # starts the fork server before timing
    rounds = [(_run(good), _run(both)) for _ in range(ROUNDS)]
    calm_s, mixed_s = (min(seconds for _, seconds in runs) for runs in zip(*rounds, strict=True))
    (calm, _), (mixed, _) = rounds[-1]
    died = sum(error.code == "E_WORKER_DIED" for error in mixed.errors)
    assert calm.succeeded == len(good), calm.errors
    return [
        Figure("good items succeeded", mixed.succeeded, "", "=", len(good)),
        Figure("items failed with E_WORKER_DIED", died, "", "=", len(bad)),
        Figure("wall time", mixed_s, "s"),
        Figure("wall time against no deaths", mixed_s / calm_s, "ratio"),
        Figure("a death costs", 1000 * (mixed_s - calm_s) / len(bad), "ms"),
    ]


def _run(items: list[WorkItem]) -> tuple[StageOutcome, float]:
    started = time.perf_counter()
    outcome = run_stage(
        RunSpec(Plan("dying", items), by_name, StageOptions(policy="cpu"), backend=ProcessBackend(WORKERS))
    )
    return outcome, time.perf_counter() - started
