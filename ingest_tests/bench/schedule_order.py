"""The order of work: wall time and mean completion time of each order, relative to plan order.

Items sleep as long as they cost. Small-first and large-first sort the plan, as far as a queue of `max_queue`
items allows; `sjf` is the order of the product.
"""

import heapq
import itertools
import random
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.errors import StageError
from ingest_assets.core.items import Plan, Result, WorkItem
from ingest_assets.runner import QuietHooks, RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.bench.figures import Figure, Relation, Size
from ingest_tests.runner.workers import by_name

ITEMS = 200
WORK_S = 6.0
WORKERS = (2, 4, 8)
QUEUES = (64, 512)
ORDERS = ("fifo", "sjf", "small first", "large first")


def measure(size: Size) -> list[Figure]:
    """Return ratios to plan order, each the mean over two, four and eight workers."""
    figures: list[Figure] = []
    for name, costs in _distributions(size).items():
        for max_queue in QUEUES:
            rounds = [_compared(costs, workers, max_queue) for workers in WORKERS]
            figures += _ratios(rounds, f"{name}, queue {max_queue}")
    return [*figures, *_alone(size)]


def _distributions(size: Size) -> Mapping[str, list[float]]:
    """Return seconds per item, in plan order, with equal totals."""
    rng = random.Random(7)
    costs = {
        "log-normal": [rng.lognormvariate(0, 1.5) for _ in range(size.of(ITEMS))],
        "giant last": [rng.lognormvariate(0, 1) for _ in range(size.of(ITEMS))],
    }
    costs["giant last"].append(sum(costs["giant last"]) / 4)
    if size.corpus is not None:
        files = sorted(path for path in size.corpus.rglob("*") if path.is_file())
        costs["corpus"] = [float(path.stat().st_size) for path in files]
    return {name: _scaled(each, WORK_S * min(1.0, size.scale)) for name, each in costs.items()}


def _scaled(costs: Sequence[float], total_s: float) -> list[float]:
    return [cost * total_s / sum(costs) for cost in costs]


@dataclass
class _Run(QuietHooks):
    """The figures of one order, measured in its own thread, since sleeping items need no core."""

    order: str
    wall_s: float = 0.0
    ended_s: list[float] = field(default_factory=list)

    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None:
        """Record the time."""
        self.ended_s.append(time.perf_counter())

    def run(self, costs: Sequence[float], workers: int, max_queue: int) -> None:
        """Run the stage and record seconds since its start."""
        plan = Plan(
            "order", [_item(n, cost) for n, cost in enumerate(_planned(costs, self.order, max_queue))]
        )
        options = StageOptions(schedule="sjf" if self.order == "sjf" else "fifo", max_queue=max_queue)
        started = time.perf_counter()
        run_stage(RunSpec(plan, by_name, options, self, backend=ThreadBackend(workers)))
        self.wall_s = time.perf_counter() - started
        self.ended_s = [ended - started for ended in self.ended_s]


def _compared(costs: Sequence[float], workers: int, max_queue: int) -> dict[str, _Run]:
    runs = {order: _Run(order) for order in ORDERS}
    threads = [
        threading.Thread(target=run.run, args=(costs, workers, max_queue), daemon=True)
        for run in runs.values()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return runs


def _ratios(rounds: Sequence[Mapping[str, _Run]], where: str) -> Iterator[Figure]:
    for order in ORDERS[1:]:
        wall = statistics.mean(runs[order].wall_s / runs["fifo"].wall_s for runs in rounds)
        mean = statistics.mean(
            statistics.mean(runs[order].ended_s) / statistics.mean(runs["fifo"].ended_s) for runs in rounds
        )
        relation: Relation | None = "<=" if order == "sjf" else None
        yield Figure(f"{where}: {order}, wall", wall, "of fifo", relation, 1.02)
        yield Figure(f"{where}: {order}, mean end", mean, "of fifo")


def _alone(size: Size) -> list[Figure]:
    """With one worker no order changes the wall time, so results must come sooner."""
    costs = _scaled(_distributions(size)["log-normal"], 1.0)
    runs = _compared(costs, 1, 512)
    sooner = statistics.mean(runs["sjf"].ended_s) / statistics.mean(runs["fifo"].ended_s)
    return [Figure("log-normal, one worker: sjf, mean end", sooner, "of fifo", "<", 1)]


def _item(number: int, cost: float) -> WorkItem:
    return WorkItem(f"sleep-{number}", "f", meta={"seconds": cost}, cost_hint=cost)


def _planned(costs: Sequence[float], order: str, max_queue: int) -> list[float]:
    """Return the costs in the order in which a queue of this size releases them."""
    if order not in ("small first", "large first"):
        return list(costs)
    sign = 1 if order == "small first" else -1
    arriving = iter(costs)
    queue = [sign * cost for cost in itertools.islice(arriving, max_queue)]
    heapq.heapify(queue)
    let_out = [sign * heapq.heapreplace(queue, sign * cost) for cost in arriving]
    return let_out + [sign * cost for cost in sorted(queue)]
