"""One item stuck in native code among good ones: it is killed at its limit and does not affect the others."""

import time

from ingest_assets.backends import ProcessBackend
from ingest_assets.core.items import Plan, WorkItem
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.bench.figures import Figure, Size
from ingest_tests.runner.workers import by_name

GOOD_ITEMS = 20
SECONDS_EACH = 0.2
LIMIT_S = 1.0
WORKERS = 2


def measure(size: Size) -> list[Figure]:
    """Return the wall time beyond that of the good items alone, including the start of processes."""
    good = size.of(GOOD_ITEMS)
    items = [WorkItem("stuck-0", "f")]
    items += [WorkItem(f"sleep-{n}", "f", meta={"seconds": SECONDS_EACH}) for n in range(1, good + 1)]
    options = StageOptions(policy="cpu", per_item_timeout_s=LIMIT_S)
    started = time.perf_counter()
    outcome = run_stage(RunSpec(Plan("stuck", items), by_name, options, backend=ProcessBackend(WORKERS)))
    wall_s = time.perf_counter() - started
    timeouts = sum(error.category == "timeout" for error in outcome.errors)
    return [
        Figure("good items succeeded", outcome.succeeded, "", "=", good),
        Figure("items timed out", timeouts, "", "=", 1),
        Figure("wall time beyond the good items'", wall_s - good * SECONDS_EACH / WORKERS, "s", "<=", 4),
    ]
