"""A million items that need not run: their rate and their memory."""

import time
from collections.abc import Iterator

import psutil

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import Plan, WorkItem
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.runner.fakes import satisfied
from ingest_tests.runner.workers import by_name

ITEMS = 1_000_000
ITEMS_PER_LOOK = 10_000
MIB = 2**20


def measure(size: Size) -> list[Figure]:
    """Items per second, including the plan, and growth of resident memory at its peak."""
    me, count = psutil.Process(), size.of(ITEMS)
    looks: list[int] = []

    def items() -> Iterator[WorkItem]:
        for number in range(count):
            if number % ITEMS_PER_LOOK == 0:
                looks.append(me.memory_info().rss)
            yield satisfied(f"item-{number}")

    before, started = me.memory_info().rss, time.perf_counter()
    outcome = run_stage(
        RunSpec(Plan("skipped", items(), count), by_name, StageOptions(), backend=ThreadBackend(2))
    )
    wall_s = time.perf_counter() - started
    looks.append(me.memory_info().rss)
    return [
        Figure("items skipped", outcome.skipped, "", "=", count),
        Figure("items through the plan", count / wall_s, "items/s", ">=", 50_000),
        Figure("growth of resident memory", (max(looks) - before) / MIB, "MiB", "<", 64),
    ]
