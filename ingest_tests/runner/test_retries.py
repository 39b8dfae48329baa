"""Retries: how often, after which wait, and for which errors."""

import random
from concurrent.futures import Future
from typing import Any

import pytest

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.errors import ItemCancelled, WorkerLost
from ingest_assets.runner import Manifest, RunSpec, read_manifest, run_stage
from ingest_assets.runner.schedule import backoff_s
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import FastClock, plan_of
from ingest_tests.runner.workers import by_name


@pytest.mark.parametrize(("attempt_no", "base_s"), [(1, 2), (2, 4), (3, 8), (4, 16)])
def test_the_wait_doubles_with_a_jitter_of_at_most_a_quarter(attempt_no, base_s):
    """The jitter spreads retries over time."""
    options, rng = StageOptions(retry_backoff_s=2), random.Random(7)
    waits = [backoff_s(attempt_no, options, rng) for _ in range(200)]

    assert min(waits) >= base_s
    assert base_s * 1.2 < max(waits) <= base_s * 1.25


def test_a_backoff_waits_on_the_given_clock():
    """An hour of backoff takes no real time."""
    clock = FastClock()
    options = StageOptions(retries=3, retry_backoff_s=600, diagnostics_interval_s=1e6)
    outcome = run_stage(
        RunSpec(
            plan_of("missing"), by_name, options, backend=ThreadBackend(1), clock=clock, rng=random.Random(1)
        )
    )

    assert (outcome.failed, outcome.retries) == (1, 3)
    expected = random.Random(1)
    assert clock.waited == pytest.approx([600 * 2**n * (1 + 0.25 * expected.random()) for n in range(3)])


def test_other_items_run_while_one_waits():
    """The retry is due in an hour; the others finish first."""
    clock = FastClock()
    finished = []
    plan = plan_of("recovers", "ok", "ok")
    options = StageOptions(retries=1, retry_backoff_s=3600, diagnostics_interval_s=1e6)

    def remembers(item, context):
        result = by_name(item, context)
        finished.append(item.item_id)
        return result

    outcome = run_stage(RunSpec(plan, remembers, options, backend=ThreadBackend(1), clock=clock))
    assert finished == ["ok-1", "ok-2", "recovers-0"]
    assert outcome.succeeded == 3


def test_errors_that_are_not_retryable_are_not_retried():
    """Broken contracts and unknown errors are not retryable."""
    options = StageOptions(retries=5, retry_backoff_s=0)
    outcome = run_stage(RunSpec(plan_of("fail", "unknown"), by_name, options, backend=ThreadBackend(1)))

    assert (outcome.failed, outcome.retries) == (2, 0)


def test_every_attempt_is_recorded(tmp_path):
    """Each row has the attempt's number; the outcome has the last error."""
    manifest = Manifest(tmp_path / "manifest.jsonl")
    options = StageOptions(retries=1, retry_backoff_s=0)
    run_stage(
        RunSpec(
            plan_of("recovers", "missing"),
            by_name,
            options,
            backend=ThreadBackend(1),
            manifest=manifest,
            run_id="run-1",
        )
    )

    rows = [(row.item_id, row.attempt_no, row.status) for row in read_manifest(manifest.path)]
    assert sorted(rows) == [
        ("missing-1", 1, "failed"),
        ("missing-1", 2, "failed"),
        ("recovers-0", 1, "failed"),
        ("recovers-0", 2, "done"),
    ]


def test_the_plan_is_not_read_while_too_many_retries_wait():
    """Memory stays limited if all items must be retried."""
    clock = FastClock()
    options = StageOptions(retries=1, retry_backoff_s=100, max_queue=4, diagnostics_interval_s=1e6)
    outcome = run_stage(
        RunSpec(plan_of(*["recovers"] * 30), by_name, options, backend=ThreadBackend(2), clock=clock)
    )

    assert (outcome.succeeded, outcome.retries) == (30, 30)


def test_an_item_that_the_backend_cancels_is_retried():
    """The stage did not cancel it, so it must run again."""

    class Forgetful(ThreadBackend):
        def _start(self, work, timeout_s):
            future = super()._start(work, timeout_s)
            _item, context = work.args
            if context.attempt_no > 1:
                return future
            future.result()
            given_up: Future[Any] = Future()
            given_up.set_exception(ItemCancelled("closed by itself"))
            return given_up

    options = StageOptions(retry_backoff_s=0.01)
    outcome = run_stage(RunSpec(plan_of("ok", "ok"), by_name, options, backend=Forgetful(1)))

    assert (outcome.succeeded, outcome.retries) == (2, 2)


@pytest.mark.parametrize(("losses", "succeeded"), [(5, 1), (6, 0)])
def test_a_lost_worker_uses_no_retry_up_to_a_limit(losses, succeeded):
    """No retries are configured here; an item whose workers are always lost fails in the end."""

    class Unlucky(ThreadBackend):
        def _start(self, work, timeout_s):
            _item, context = work.args
            if context.attempt_no > losses:
                return super()._start(work, timeout_s)
            lost: Future[Any] = Future()
            lost.set_exception(WorkerLost("its machine vanished"))
            return lost

    options = StageOptions(retry_backoff_s=0.001)
    outcome = run_stage(RunSpec(plan_of("ok"), by_name, options, backend=Unlucky(1)))

    assert (outcome.succeeded, outcome.failed) == (succeeded, 1 - succeeded)
    assert [error.code for error in outcome.errors] == ["E_WORKER_LOST"] * (1 - succeeded)
