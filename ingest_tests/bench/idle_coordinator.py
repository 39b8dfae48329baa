"""A coordinator whose workers all sleep must sleep too."""

import importlib.util
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ingest_assets.backends import ProcessBackend, ThreadBackend
from ingest_assets.core.items import Plan, WorkItem
from ingest_assets.core.ports import ExecutionBackend
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.runner.workers import announced

WATCHED_S = 4.0
START_LIMIT_S = 60.0
WORKERS = 4


def measure(size: Size) -> list[Figure]:
    """Return CPU time over wall time of this process, from the moment all workers are asleep."""
    watched_s = WATCHED_S * size.scale
    return [
        Figure(f"CPU on {WORKERS} {name}", 100 * _idle_share(backend, watched_s), "%", "<", 5)
        for name, backend in _backends().items()
    ]


def _backends() -> Mapping[str, Callable[[], ExecutionBackend]]:
    """Yield the backends, Ray last, because a process keeps its connection to the cluster."""
    found: dict[str, Callable[[], ExecutionBackend]] = {
        "threads": lambda: ThreadBackend(WORKERS),
        "processes": lambda: ProcessBackend(WORKERS, max_mebibytes=4096),  # watched, as in a run
    }
    return found | ({"Ray actors": _on_ray} if importlib.util.find_spec("ray") else {})


def _on_ray() -> ExecutionBackend:
    from ingest_assets.backends.ray import RayBackend, connect

    connect("")
    return RayBackend(WORKERS, num_cpus=0.1)


def _idle_share(backend: Callable[[], ExecutionBackend], watched_s: float) -> float:
    shares: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        watcher = threading.Thread(target=_watch, args=(Path(folder), watched_s, shares))
        watcher.start()
        outcome = run_stage(
            RunSpec(
                _plan(Path(folder), watched_s),
                announced,
                StageOptions(per_item_timeout_s=600),
                backend=backend(),
            )
        )
        watcher.join()
    assert outcome.succeeded == WORKERS, outcome.errors
    return shares[0]


def _plan(folder: Path, watched_s: float) -> Plan:
    """Return sleepers that outlast the measurement, even those started a second before the last."""
    meta = {"seconds": watched_s + 2.0}
    items = [
        WorkItem(f"sleep-{number}", "f", output_paths=(str(folder / f"{number}.out"),), meta=meta)
        for number in range(WORKERS)
    ]
    return Plan("idle", items, WORKERS)


def _watch(folder: Path, watched_s: float, shares: list[float]) -> None:
    give_up = time.monotonic() + START_LIMIT_S
    while len(list(folder.glob("*.started"))) < WORKERS and time.monotonic() < give_up:
        time.sleep(0.05)
    wall, cpu = time.perf_counter(), time.process_time()
    time.sleep(watched_s)
    shares.append((time.process_time() - cpu) / (time.perf_counter() - wall))
