"""Guarantees of threads only: an item at its time limit is abandoned, and their number is limited."""

import threading
import time

import pytest

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.errors import ItemTimeout, ResultTimeout
from ingest_assets.core.items import Result
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import adds_up, plan_of


def test_a_late_result_is_discarded_and_the_thread_ends():
    """The item stays failed, although its worker finishes later."""
    release = threading.Event()

    def waits(item, context):
        release.wait(30)
        return Result(rows=1)

    backend = ThreadBackend(1)
    outcome = run_stage(RunSpec(plan_of("a"), waits, StageOptions(per_item_timeout_s=0.1), backend=backend))
    assert (outcome.succeeded, outcome.failed, backend.abandoned) == (0, 1, 1)

    release.set()
    give_up = time.monotonic() + 10
    while backend.abandoned and time.monotonic() < give_up:
        time.sleep(0.01)
    assert backend.abandoned == 0


def test_too_many_abandoned_threads_cancel_the_stage():
    """Blocked threads hold memory and locks; the reason has the numbers."""
    release = threading.Event()

    def waits(item, context):
        release.wait(60)
        return Result()

    options = StageOptions(per_item_timeout_s=0.02, grace_s=0)
    outcome = run_stage(RunSpec(plan_of(*["a"] * 40), waits, options, backend=ThreadBackend(1)))
    release.set()

    assert outcome.cancelled_reason == (
        "stopped because 11 threads are blocked by items that exceeded 0.02 s: the limit is 10"
    )
    assert outcome.failed == 11
    assert adds_up(outcome)


def test_limits_of_different_lengths_end_in_their_own_order():
    """A short limit after a long one is in time."""
    backend = ThreadBackend(2)
    sleeping = threading.Event()

    long = backend.submit(lambda: sleeping.wait(30), timeout_s=20)
    short = backend.submit(lambda: sleeping.wait(30), timeout_s=0.1)

    with pytest.raises(ItemTimeout, match=r"exceeded its time limit of 0\.1 s"):
        backend.get_result(short, 10)
    with pytest.raises(ResultTimeout):
        backend.get_result(long, 0)
    backend.close(0)
    sleeping.set()


def test_no_more_items_run_at_once_than_there_are_workers():
    """Threads are reused."""
    running, most = 0, 0
    lock = threading.Lock()

    def counts(item, context):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return Result()

    run_stage(RunSpec(plan_of(*["a"] * 60), counts, StageOptions(), backend=ThreadBackend(3)))
    assert most <= 3
