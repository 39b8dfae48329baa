"""Items that do nothing: the runner's cost per item, and the manifest's share of it."""

import tempfile
import time
from pathlib import Path

from ingest_assets.backends import ProcessBackend, ThreadBackend
from ingest_assets.core.items import Plan, WorkItem
from ingest_assets.core.ports import ExecutionBackend
from ingest_assets.runner import Manifest, RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.runner.workers import by_name

ITEMS = 20_000
THREADS = 8
PROCESSES = 2
ROUNDS = 2


def measure(size: Size) -> list[Figure]:
    """Rates by the wall clock; the manifest's share in CPU time, which other processes do not affect."""
    count = size.of(ITEMS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "manifest.jsonl"
        rounds = [  # in turns, and the best of each: other processes must not decide
            (_run(ThreadBackend(THREADS), count, path), _run(ThreadBackend(THREADS), count, None))
            for _ in range(ROUNDS)
        ]
        processes_s, _ = _run(ProcessBackend(PROCESSES), count, path)
    wall_s = min(with_it[0] for with_it, _ in rounds)
    share = 1 - min(bare[1] for _, bare in rounds) / min(with_it[1] for with_it, _ in rounds)
    return [
        Figure(f"items on {THREADS} threads, with manifest", count / wall_s, "items/s", ">=", 2000),
        Figure(f"items on {PROCESSES} processes, with manifest", count / processes_s, "items/s"),
        Figure("manifest's share of CPU time on threads", 100 * share, "%"),
    ]


def _run(backend: ExecutionBackend, count: int, manifest: Path | None) -> tuple[float, float]:
    """Return wall seconds, and CPU seconds of this process."""
    items = (WorkItem(f"ok-{number}", fingerprint="f") for number in range(count))
    started, cpu = time.perf_counter(), time.process_time()
    outcome = run_stage(
        RunSpec(
            Plan("trivial", items, count),
            by_name,
            StageOptions(),
            backend=backend,
            manifest=Manifest(manifest) if manifest else None,
        )
    )
    assert outcome.succeeded == count, outcome.cancelled_reason
    return time.perf_counter() - started, time.process_time() - cpu
