"""Items that do nothing: what the runner itself costs per item, and the manifest's share of it."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ingest_assets.backends import ProcessBackend, ThreadBackend
from ingest_assets.model.items import Plan, WorkItem
from ingest_assets.model.options import StageOptions
from ingest_assets.model.ports import ExecutionBackend
from ingest_assets.runner import Manifest, run_stage
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.runner.workers import by_name

ITEMS = 20_000
THREADS = 8
PROCESSES = 2
ROUNDS = 2


def measure(size: Size) -> list[Figure]:
    """Rates, and a ratio that does not depend on the machine."""
    count = size.of(ITEMS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "manifest.jsonl"
        threads_s, bare_s = [], []
        for _ in range(ROUNDS):  # in turns, and the best of each: a busy neighbour must not decide
            threads_s.append(_seconds(lambda: ThreadBackend(THREADS), count, path))
            bare_s.append(_seconds(lambda: ThreadBackend(THREADS), count, None))
        processes_s = _seconds(lambda: ProcessBackend(PROCESSES), count, path)
    with_s, without_s = min(threads_s), min(bare_s)
    return [
        Figure(f"items on {THREADS} threads, with manifest", count / with_s, "items/s", ">=", 2000),
        Figure(f"items on {PROCESSES} processes, with manifest", count / processes_s, "items/s"),
        Figure("manifest's share of the time on threads", 100 * (1 - without_s / with_s), "%"),
    ]


def _seconds(backend: Callable[[], ExecutionBackend], count: int, manifest: Path | None) -> float:
    items = (WorkItem(f"ok-{number}", fingerprint="f") for number in range(count))
    started = time.perf_counter()
    outcome = run_stage(
        Plan("trivial", items, count),
        by_name,
        StageOptions(),
        backend=backend(),
        manifest=Manifest(manifest) if manifest else None,
    )
    assert outcome.succeeded == count, outcome.cancelled_reason
    return time.perf_counter() - started
