"""How a stage ends early: budgets, failed share, interrupts. Its numbers always add up."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from ingest_assets.backends import ProcessBackend, ThreadBackend
from ingest_assets.model.items import Plan, Result, WorkItem
from ingest_assets.model.options import StageOptions
from ingest_assets.runner import Manifest, read_manifest, run_stage
from ingest_tests.runner.fakes import Recording, plan_from, plan_of
from ingest_tests.runner.workers import Writing, by_name


class Interrupted(BaseException):
    """What an orchestrator raises in the main thread."""


def test_a_budget_of_zero_stops_on_the_first_failure():
    """One worker: nothing starts after the failure."""
    options = StageOptions(error_budget=0, max_queue=3)
    outcome = run_stage(plan_of("ok", "fail", *["ok"] * 50), by_name, options, backend=ThreadBackend(1))

    assert (outcome.succeeded, outcome.failed) == (1, 1)
    assert 0 < outcome.cancelled <= 4
    assert outcome.adds_up()
    assert outcome.cancelled_reason == "stopped after 1 of 2 finished items failed: the error budget is 0"


def test_a_budget_of_two_allows_two():
    """The third failure is one too many."""
    plan = plan_of("fail", "fail", "ok", "fail", "ok", "ok")
    outcome = run_stage(plan, by_name, StageOptions(error_budget=2), backend=ThreadBackend(1))

    assert (outcome.succeeded, outcome.failed, outcome.cancelled) == (1, 3, 2)
    assert outcome.cancelled_reason == "stopped after 3 of 4 finished items failed: the error budget is 2"


def test_no_budget_never_stops():
    """Every item of a hopeless plan is tried."""
    outcome = run_stage(plan_of(*["fail"] * 40), by_name, StageOptions(), backend=ThreadBackend(2))

    assert outcome.failed == 40
    assert outcome.cancelled_reason is None


def test_a_stage_that_fails_wholesale_is_stopped_after_twenty():
    """Before twenty items a share means little."""
    options = StageOptions(max_failed_share=0.5, max_queue=5)
    outcome = run_stage(plan_of(*["fail"] * 100), by_name, options, backend=ThreadBackend(1))

    assert outcome.failed == 20
    assert outcome.cancelled_reason == (
        "stopped because 20 of 20 finished items failed (100%): at most 50% may"
    )


def test_the_first_failure_stops_when_asked():
    """In words a person understands."""
    options = StageOptions(cancel_on_first_failure=True)
    outcome = run_stage(plan_of("ok", "fail", "ok"), by_name, options, backend=ThreadBackend(1))

    assert outcome.cancelled_reason == "stopped at the first failure, as asked, after 2 finished items"
    assert (outcome.succeeded, outcome.failed, outcome.cancelled) == (1, 1, 1)


def test_an_item_that_waits_for_its_retry_is_cancelled_with_the_stage():
    """It failed once but not for good."""
    options = StageOptions(retries=5, retry_backoff_s=60, error_budget=0)
    outcome = run_stage(plan_of("missing", "fail"), by_name, options, backend=ThreadBackend(1))

    assert (outcome.failed, outcome.cancelled, outcome.retries) == (1, 1, 0)


def test_cancelled_items_have_a_row_in_the_manifest(tmp_path):
    """The ledger agrees with the outcome."""
    manifest = Manifest(tmp_path / "manifest.jsonl")
    options = StageOptions(error_budget=0)
    outcome = run_stage(
        plan_of("fail", "ok", "ok"), by_name, options, backend=ThreadBackend(1), manifest=manifest
    )

    rows = [(row.item_id, row.status) for row in read_manifest(manifest.path)]
    assert rows == [("fail-0", "failed"), ("ok-1", "cancelled"), ("ok-2", "cancelled")]
    assert outcome.cancelled == 2


@pytest.mark.parametrize("kind", ["threads", "processes"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, Interrupted])
def test_an_interrupt_ends_the_stage_promptly_and_is_raised_again(tmp_path, kind, error):
    """Finished parts stay, running items are stopped, the manifest and the hooks hear of it."""

    def raise_it(number, frame):
        raise error

    hooks, manifest = Recording(), Manifest(tmp_path / "manifest.jsonl")
    backend = ThreadBackend(2) if kind == "threads" else ProcessBackend(2)
    previous = signal.signal(signal.SIGALRM, raise_it)
    _alarm_when(tmp_path / "sleep-2.started")
    began = time.monotonic()
    try:
        with pytest.raises(error):
            run_stage(
                _plan_with_outputs(tmp_path),
                _slow_third,
                StageOptions(),
                hooks,
                backend=backend,
                manifest=manifest,
            )
    finally:
        signal.signal(signal.SIGALRM, previous)

    assert time.monotonic() - began < 20
    (outcome,) = hooks.outcomes
    assert outcome.adds_up()
    assert outcome.cancelled >= 1
    assert outcome.cancelled_reason == "interrupted"
    assert (tmp_path / "ok-0").read_text(encoding="utf-8") == "new ok-0"
    assert not (tmp_path / "sleep-2").exists()
    rows = {row.item_id: row.status for row in read_manifest(manifest.path)}
    assert rows["sleep-2"] == "cancelled"
    assert sum(status == "cancelled" for status in rows.values()) == outcome.cancelled


def test_a_plan_that_raises_ends_the_stage_after_its_hooks():
    """The fault is the caller's and comes back to the caller."""

    def items():
        yield WorkItem("ok-0", "f")
        raise ValueError("no such folder")

    hooks = Recording()
    with pytest.raises(ValueError, match="no such folder"):
        run_stage(plan_from(items()), by_name, StageOptions(), hooks, backend=ThreadBackend(1))

    assert hooks.calls[-1] == "after_stage"
    assert hooks.outcomes[0].adds_up()


def test_a_stage_runs_in_any_thread():
    """No signal handlers are installed."""
    outcomes = []

    def run():
        outcomes.append(run_stage(plan_of("ok", "ok"), by_name, StageOptions(), backend=ProcessBackend(1)))

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=30)

    assert outcomes[0].succeeded == 2
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def _slow_third(item, context) -> Result:
    return Writing(60 if item.item_id.startswith("sleep") else 0)(item, context)


def _plan_with_outputs(folder: Path) -> Plan:
    names = ["ok-0", "ok-1", "sleep-2", "ok-3", "sleep-4", "ok-5"]
    return Plan("stage", [WorkItem(name, "f", output_paths=(str(folder / name),)) for name in names])


def _alarm_when(path: Path) -> None:
    def wait() -> None:
        give_up = time.monotonic() + 30
        while not path.exists() and time.monotonic() < give_up:
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGALRM)

    threading.Thread(target=wait, daemon=True).start()
