"""An interrupt ends a stage after the grace time, a second one at once; the numbers always add up."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from ingest_assets.backends import InlineBackend, ProcessBackend, ThreadBackend
from ingest_assets.core.items import StageOutcome, WorkItem
from ingest_assets.runner import Manifest, RunSpec, read_manifest, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import Recording, plan_from, plan_of
from ingest_tests.runner.interrupting import (
    Interrupted,
    backend_of,
    handled,
    interrupted,
    pressed,
    require_agreement,
    writing,
)
from ingest_tests.runner.workers import by_name


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_the_first_interrupt_lets_running_items_finish_and_starts_no_other(tmp_path, kind):
    """Items that finish within the grace time need not run again."""
    plan = writing(tmp_path, a=0, b=1, c=1, d=0, e=0)
    with pressed(lambda: (tmp_path / "b.started").exists() and (tmp_path / "c.started").exists()):
        outcome, rows, took_s = interrupted(plan, StageOptions(grace_s=20), backend_of(kind), tmp_path)

    assert (outcome.succeeded, outcome.cancelled) == (3, 2)
    assert outcome.cancelled_reason == "interrupted"
    assert [name for name in "abcde" if rows[name].status == "done"] == ["a", "b", "c"]
    assert not (tmp_path / "d.started").exists()
    assert took_s < 15


@pytest.mark.parametrize("kind", ["threads", "processes"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, Interrupted])
def test_items_that_exceed_the_grace_time_are_stopped(tmp_path, kind, error):
    """Finished parts stay; manifest and hooks report the others as cancelled, for any host's exception."""
    plan = writing(tmp_path, a=0, b=60, c=60, d=0)
    started = tmp_path / "c.started"
    with handled(signal.SIGALRM, error), pressed(started.exists, number=signal.SIGALRM):
        outcome, rows, took_s = interrupted(plan, StageOptions(grace_s=0.5), backend_of(kind), tmp_path)

    assert (outcome.succeeded, outcome.cancelled) == (1, 3)
    assert (tmp_path / "a").read_text(encoding="utf-8") == "new a"
    assert not (tmp_path / "b").exists()
    assert rows["b"].error is not None
    assert rows["b"].error["message"] == "interrupted"
    assert took_s < 15


@pytest.mark.parametrize("kind", ["threads", "processes"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
def test_a_second_interrupt_ends_the_grace_time_at_once(tmp_path, kind, number):
    """The signal is handled by the stage, or only by the host."""
    plan = writing(tmp_path, a=60, b=60, c=0)
    with handled(number, KeyboardInterrupt), pressed((tmp_path / "a.started").exists, (0.1, 0.6), number):
        outcome, _, took_s = interrupted(plan, StageOptions(grace_s=60), backend_of(kind), tmp_path)

    assert outcome.cancelled == 3
    assert took_s < 15


def test_a_worker_that_is_stopped_together_with_the_stage_cancels_its_item(tmp_path):
    """A supervisor can signal all processes at once; the item has not failed."""
    plan, started = writing(tmp_path, a=60, b=0), tmp_path / "a.started"

    def end_the_worker() -> bool:
        if not started.exists() or not started.read_text():
            return False
        threading.Timer(0.4, os.kill, (int(started.read_text()), signal.SIGTERM)).start()
        return True

    with pressed(end_the_worker):
        outcome, _, took_s = interrupted(plan, StageOptions(grace_s=60), ProcessBackend(1), tmp_path)

    assert (outcome.failed, outcome.cancelled) == (0, 2)
    assert took_s < 15


def test_a_signal_that_arrives_twice_is_one_press(tmp_path):
    """`timeout` sends a signal to the process and to its group."""
    plan = writing(tmp_path, a=0.6)
    with pressed((tmp_path / "a.started").exists, (0.1, 0.105, 0.11)):
        outcome, _, _ = interrupted(plan, StageOptions(grace_s=20), ThreadBackend(1), tmp_path)

    assert outcome.succeeded == 1


def test_an_interrupt_while_items_wait_for_their_retry(tmp_path):
    """The stage ends without waiting for the backoff of a minute."""
    options = StageOptions(retries=3, retry_backoff_s=60)
    path = tmp_path / "manifest.jsonl"
    with pressed(lambda: path.exists() and len(list(read_manifest(path))) == 2):
        outcome, rows, took_s = interrupted(
            plan_of("missing", "missing"), options, ThreadBackend(1), tmp_path, by_name
        )

    assert (outcome.failed, outcome.cancelled, outcome.retries) == (0, 2, 0)
    assert {row.attempt_no for row in rows.values()} == {2}
    assert took_s < 10


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_interrupt_while_an_item_is_submitted_loses_no_item(tmp_path, kind):
    """The item runs already, so it must be accounted for."""
    backend = backend_of(kind)
    original = backend.submit

    def submit(*arguments, **keywords):
        job_id = original(*arguments, **keywords)
        while not (tmp_path / "a.started").exists():
            time.sleep(0.005)
        signal.raise_signal(signal.SIGINT)
        return job_id

    backend.submit = submit
    outcome, rows, _ = interrupted(writing(tmp_path, a=0.3, b=0), StageOptions(grace_s=20), backend, tmp_path)

    assert (outcome.succeeded, outcome.cancelled) == (1, 1)
    assert rows["a"].status == "done"
    assert not (tmp_path / "b.started").exists()


def test_an_interrupt_stops_an_item_that_runs_in_the_same_thread(tmp_path):
    """With the inline backend, the item runs in the interrupted thread."""
    plan = writing(tmp_path, a=60, b=0)
    with pressed((tmp_path / "a.started").exists):
        outcome, _, took_s = interrupted(plan, StageOptions(), InlineBackend(), tmp_path)

    assert outcome.cancelled == 2
    assert took_s < 15


def test_an_interrupt_while_nothing_is_in_flight(tmp_path):
    """The interrupt is raised in the plan."""

    def items() -> Iterator[WorkItem]:
        yield from plan_of("ok", "ok").items
        signal.raise_signal(signal.SIGINT)
        yield WorkItem("never", "f")

    outcome, rows, _ = interrupted(
        plan_from(items()), StageOptions(), ThreadBackend(1), tmp_path, worker=by_name
    )

    assert (outcome.scheduled, outcome.cancelled) == (2, 2)
    assert "never" not in rows


class InterruptedIn(Recording):
    """Raises an interrupt inside one call, once."""

    def __init__(self, call: str) -> None:
        super().__init__()
        self._call = call

    def _record(self, call: str, detail: str = "") -> None:
        super()._record(call, detail)
        if call == self._call:
            self._call = ""
            raise Interrupted


@pytest.mark.parametrize(
    "call", ["before_stage", "before_item", "after_item", "after_stage", "start", "update", "finish"]
)
def test_an_interrupt_inside_a_listener(tmp_path, call):
    """It does not count as an error of the listener: the stage ends, and all listeners are called."""
    listener, manifest = InterruptedIn(call), Manifest(tmp_path / "manifest.jsonl")
    options, backend = StageOptions(max_queue=1), ThreadBackend(1)
    with pytest.raises(Interrupted):
        run_stage(
            RunSpec(
                plan_of("ok", "fail", "ok"),
                by_name,
                options,
                listener,
                backend=backend,
                manifest=manifest,
                progress=listener,
            )
        )

    (outcome,) = listener.outcomes
    require_agreement(outcome, {row.item_id: row for row in read_manifest(manifest.path)})


def test_an_interrupt_at_the_end_is_raised_after_all_reports(tmp_path):
    """It must neither be lost nor stop the reports."""

    class Pressing(Recording):
        def after_stage(self, outcome: StageOutcome) -> None:
            signal.raise_signal(signal.SIGINT)
            super().after_stage(outcome)

    hooks = Pressing()
    with pytest.raises(KeyboardInterrupt):
        run_stage(RunSpec(plan_of("ok", "ok"), by_name, StageOptions(), hooks, backend=ThreadBackend(1)))

    assert hooks.calls[-1] == "after_stage"
    assert (hooks.outcomes[0].succeeded, hooks.outcomes[0].cancelled_reason) == (2, None)


def _raise_inside_the_stage(_number: int, frame: FrameType | None) -> None:
    """Raise only if the signal arrives inside the stage, not elsewhere in the test."""
    while frame is not None:
        if frame.f_code is run_stage.__code__:
            raise KeyboardInterrupt
        frame = frame.f_back


@pytest.mark.parametrize("delay_ms", range(0, 60, 3))
def test_the_numbers_agree_wherever_repeated_interrupts_arrive(tmp_path, delay_ms):
    """A key held down repeats thirty times a second; here a signal arrives every 2 ms."""
    hooks, manifest = Recording(), Manifest(tmp_path / "manifest.jsonl")
    options = StageOptions(retries=1, retry_backoff_s=0, max_queue=8)
    plan = plan_of(*["ok", "fail", "recovers"] * 400)
    presses = [(delay_ms + 2 * number) / 1000 for number in range(60)]
    before = signal.signal(signal.SIGINT, _raise_inside_the_stage)
    with pressed(manifest.path.exists, presses), pytest.raises(KeyboardInterrupt):
        run_stage(RunSpec(plan, by_name, options, hooks, backend=ThreadBackend(3), manifest=manifest))
    signal.signal(signal.SIGINT, before)

    (outcome,) = hooks.outcomes
    rows = list(read_manifest(manifest.path))
    assert outcome.cancelled_reason == "interrupted"
    assert sum(row.status == "done" for row in rows) == outcome.succeeded
    require_agreement(outcome, {row.item_id: row for row in rows})


def test_a_stage_restores_the_signal_handlers_of_its_host():
    """It replaces them only while it runs in the main thread."""
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    run_stage(RunSpec(plan_of("ok"), by_name, StageOptions(), backend=ThreadBackend(1)))

    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_stage_runs_in_any_thread():
    """Other threads receive no signals and cannot install handlers."""
    outcomes = []

    def run() -> None:
        outcomes.append(
            run_stage(RunSpec(plan_of("ok", "ok"), by_name, StageOptions(), backend=ProcessBackend(1)))
        )

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=30)

    assert outcomes[0].succeeded == 2
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
