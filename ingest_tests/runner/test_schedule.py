"""The order in which waiting items start."""

import pytest

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import WorkItem
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.runner.schedule import ReadyQueue, Ticket
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import Recording, plan_from
from ingest_tests.runner.workers import by_name


def queue_of(schedule: str, *costs: float) -> ReadyQueue:
    """Return a queue of new tickets, named by their position in the plan."""
    ready = ReadyQueue(schedule)
    for place, cost in enumerate(costs):
        ready.push(ticket(place, cost))
    return ready


def ticket(place: int, cost: float, attempt_no: int = 1) -> Ticket:
    """Return a ticket at this position in the plan."""
    return Ticket(WorkItem(f"ok-{place}", "f", cost_hint=cost), place, attempt_no)


def places(ready: ReadyQueue, *, held: bool) -> list[int]:
    """Return the order of tickets: while the first is still running, or one after the other."""
    order = []
    while ready:
        taken = ready.pop()
        order.append(taken.plan_order)
        if not held:
            ready.release(taken)
    return order


@pytest.mark.parametrize("held", [False, True])
def test_plan_order_ignores_costs(held):
    """This holds for one worker and for several."""
    assert places(queue_of("fifo", 5, 1, 3, 1), held=held) == [0, 1, 2, 3]


def test_one_worker_takes_the_smallest_first():
    """The wall time does not depend on the order, and first results are earlier; ties keep plan order."""
    order = []

    class Watching(Recording):
        def before_item(self, item):
            order.append(item.item_id)

    costs = [5.0, 1.0, 3.0, 1.0]
    plan = plan_from(WorkItem(f"ok-{n}", "f", cost_hint=cost) for n, cost in enumerate(costs))
    run_stage(RunSpec(plan, by_name, StageOptions(schedule="sjf"), Watching(), backend=ThreadBackend(1)))
    assert order == ["ok-1", "ok-3", "ok-2", "ok-0"]


def test_while_one_worker_has_the_smallest_the_others_take_the_largest():
    """The largest item must not run last and alone; ties keep plan order."""
    assert places(queue_of("sjf", 3, 1, 9, 3, 9, 2), held=True) == [1, 2, 4, 0, 3, 5]


def test_the_next_smallest_follows_when_the_last_has_ended():
    """It can have failed, and large ones can still run."""
    ready = queue_of("sjf", 4, 1, 8, 2)
    small, large = ready.pop(), ready.pop()
    ready.release(large)
    ready.release(small)

    assert (small.plan_order, large.plan_order) == (1, 2)
    assert [ready.pop().plan_order, ready.pop().plan_order] == [3, 0]


def test_after_a_failed_smallest_item_the_next_smallest_starts():
    """Otherwise a single worker would continue with the largest."""
    hooks = Recording()
    names = ["ok", "ok", "ok", "fail"]
    items = [WorkItem(f"{name}-{n}", "f", cost_hint=9.0 - n) for n, name in enumerate(names)]
    run_stage(
        RunSpec(plan_from(items), by_name, StageOptions(schedule="sjf"), hooks, backend=ThreadBackend(1))
    )

    started = [call.split()[1] for call in hooks.calls if call.startswith("before_item")]
    assert started == ["fail-3", "ok-2", "ok-1", "ok-0"]


@pytest.mark.parametrize("schedule", ["fifo", "sjf"])
@pytest.mark.parametrize("held", [False, True])
def test_retries_go_first(schedule, held):
    """Their cost does not matter."""
    ready = queue_of(schedule, 1, 9, 1)
    ready.push(ticket(3, 5, attempt_no=2))
    ready.push(ticket(4, 0, attempt_no=3))

    assert places(ready, held=held)[:2] == [3, 4]


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("max_queue", [1, 3, 100])
def test_every_item_runs_once_in_each_order(workers, max_queue):
    """Also if the queue has only a part of the plan."""
    hooks = Recording()
    items = [WorkItem(f"ok-{n}", "f", cost_hint=float(n * 7 % 5)) for n in range(40)]
    options = StageOptions(schedule="sjf", max_queue=max_queue)
    run_stage(RunSpec(plan_from(items), by_name, options, hooks, backend=ThreadBackend(workers)))

    started = [call.split()[1] for call in hooks.calls if call.startswith("before_item")]
    assert sorted(started) == sorted(item.item_id for item in items)
