"""What only threads promise: an item past its limit is abandoned, and not too many of them are."""

import threading
import time

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import ItemContext, Result, WorkItem
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import adds_up, plan_of


def test_a_late_result_is_thrown_away_and_the_thread_comes_back():
    """The item failed; that its worker finished later changes nothing."""
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
    """Threads that never come back hold memory and locks; the reason names the numbers."""
    release = threading.Event()

    def waits(item, context):
        release.wait(60)
        return Result()

    options = StageOptions(per_item_timeout_s=0.02, grace_s=0)
    outcome = run_stage(RunSpec(plan_of(*["a"] * 40), waits, options, backend=ThreadBackend(1)))
    release.set()

    assert outcome.cancelled_reason == (
        "stopped because 11 threads are stuck in items past their limit of 0.02 s: at most 10 may be"
    )
    assert outcome.failed == 11
    assert adds_up(outcome)


def test_limits_of_different_lengths_end_in_their_own_order():
    """A short limit behind a long one is not forgotten."""
    backend = ThreadBackend(2)
    sleeping = threading.Event()

    def sleeps(item, context):
        sleeping.wait(30)

    long = backend.submit(sleeps, WorkItem("long", "f"), ItemContext(), 20)
    short = backend.submit(sleeps, WorkItem("short", "f"), ItemContext(), 0.1)

    assert str(short.exception(timeout=10)) == "ran past its limit of 0.1 s"
    assert not long.done()
    backend.close(0)
    sleeping.set()


def test_no_more_items_run_at_once_than_there_are_workers():
    """Threads are reused, also after some were abandoned."""
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
