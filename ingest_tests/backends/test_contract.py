"""One contract over every backend: what an item can do, the stage survives and explains."""

import pytest

from ingest_assets.core.errors import SubmitFailed
from ingest_assets.core.items import ItemContext, StageOutcome, WorkItem
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import adds_up, plan_of
from ingest_tests.runner.workers import by_name

# What sleeps does so for a minute; workers may take long to start on a machine that is busy.
NOT_A_MINUTE_S = 45


def codes(outcome: StageOutcome) -> dict[str, str]:
    """Item to error code."""
    return {error.item_id: error.code for error in outcome.errors}


def test_good_items_are_counted_with_their_rows(backend):
    """The happy path."""
    outcome = run_stage(RunSpec(plan_of(*["ok"] * 10), by_name, StageOptions(), backend=backend))

    assert (outcome.scheduled, outcome.succeeded, outcome.rows) == (10, 10, 10)
    assert outcome.counts == {"pages": 20}
    assert outcome.errors == ()
    assert outcome.workers == 2


def test_a_failing_item_is_data_and_its_neighbours_run(backend):
    """One bad document never costs the others."""
    outcome = run_stage(RunSpec(plan_of("ok", "fail", "ok", "ok"), by_name, StageOptions(), backend=backend))

    assert (outcome.succeeded, outcome.failed) == (3, 1)
    (error,) = outcome.errors
    assert (error.item_id, error.category, error.code) == ("fail-1", "contract", "E_CONTRACT")
    assert error.message == "fail-1 is no good"
    assert error.detail == {"item": "fail-1"}


def test_a_hanging_item_ends_at_its_limit_and_its_neighbours_run(backend):
    """Twenty good items and one that would sleep for a minute."""
    plan = plan_of(*["ok"] * 10, "sleep", *["ok"] * 10)
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(per_item_timeout_s=1), backend=backend))

    assert (outcome.succeeded, outcome.failed) == (20, 1)
    (error,) = outcome.errors
    assert (error.category, error.code, error.retryable) == ("timeout", "E_TIMEOUT", True)
    assert error.message == "ran past its limit of 1 s"
    assert outcome.wall_s < NOT_A_MINUTE_S


@pytest.mark.parametrize(
    ("deed", "code", "words"),
    [
        ("odd", "E_UNKNOWN", "Unpicklable: held together by a lock"),
        ("unknown", "E_UNKNOWN", "ZeroDivisionError: cannot divide by <object>"),
        ("leave", "E_UNKNOWN", "SystemExit: 3"),
        (
            "lock",
            "E_CONTRACT",
            "the worker's result does not pickle: TypeError: cannot pickle '_thread.lock' object",
        ),
        ("none", "E_CONTRACT", "the worker returned NoneType, not a Result"),
    ],
)
def test_whatever_a_worker_raises_or_returns_belongs_to_its_item(backend, deed, code, words):
    """Errors that do not pickle, results that do not pickle, results that are none."""
    outcome = run_stage(RunSpec(plan_of("ok", deed, "ok"), by_name, StageOptions(), backend=backend))

    assert outcome.succeeded == 2
    assert codes(outcome) == {f"{deed}-1": code}
    assert outcome.errors[0].message == words
    assert not outcome.errors[0].retryable


def test_a_worker_that_prints_corrupts_nothing(backend):
    """Libraries print."""
    outcome = run_stage(RunSpec(plan_of("print", "ok", "print"), by_name, StageOptions(), backend=backend))

    assert outcome.succeeded == 3


def test_a_worker_knows_its_attempt_and_its_deadline(backend):
    """A considerate worker stops by itself."""
    options = StageOptions(per_item_timeout_s=50)
    outcome = run_stage(RunSpec(plan_of("deadline"), by_name, options, backend=backend))

    assert outcome.counts == {"attempt": 1, "left_s": 50}


def test_retryable_errors_are_tried_again(backend):
    """The second attempt succeeds."""
    options = StageOptions(retries=2, retry_backoff_s=0.01)
    outcome = run_stage(RunSpec(plan_of("mended", "ok", "mended"), by_name, options, backend=backend))

    assert (outcome.succeeded, outcome.failed, outcome.retries) == (3, 0, 2)


def test_an_empty_plan_is_a_stage_too(backend):
    """Nothing to do."""
    outcome = run_stage(RunSpec(plan_of(), by_name, StageOptions(), backend=backend))

    assert outcome.scheduled == 0
    assert adds_up(outcome)


def test_cancelling_gives_running_items_their_grace(backend):
    """The failure stops the stage; the short item beside it still finishes, the long queue does not start."""
    plan = plan_of("fail", "sleep", *["ok"] * 30, meta={"seconds": 0.5})
    options = StageOptions(error_budget=0, max_queue=10, grace_s=60)
    outcome = run_stage(RunSpec(plan, by_name, options, backend=backend))

    assert outcome.failed == 1
    assert outcome.cancelled > 0
    assert adds_up(outcome)
    assert outcome.cancelled_reason is not None
    assert "the error budget is 0" in outcome.cancelled_reason
    assert outcome.wall_s < NOT_A_MINUTE_S


def test_the_grace_time_ends(backend):
    """A minute-long sleep does not hold up a cancelled stage."""
    options = StageOptions(cancel_on_first_failure=True, grace_s=0.3)
    outcome = run_stage(RunSpec(plan_of("sleep", "fail", "ok"), by_name, options, backend=backend))

    assert (outcome.failed, outcome.cancelled + outcome.succeeded) == (1, 2)
    assert outcome.cancelled >= 1
    assert adds_up(outcome)
    assert outcome.wall_s < NOT_A_MINUTE_S


def test_a_closed_backend_takes_nothing_and_may_be_closed_again(backend):
    """Closing is final."""
    backend.close(0)
    backend.close(0)

    with pytest.raises(SubmitFailed, match="closed"):
        backend.submit(by_name, WorkItem("ok-1", "f"), ItemContext(), 0)


def test_closing_answers_every_future(backend):
    """Nobody waits for ever."""
    item = WorkItem("sleep-1", "f")
    futures = [backend.submit(by_name, item, ItemContext(), 0) for _ in range(5)]
    backend.close(0)

    assert all(future.done() for future in futures)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_call_that_raises_ends_its_worker_and_nothing_else(backend, capfd):
    """Attempts never raise; a backend survives calls that do."""
    raising = backend.submit(by_name, WorkItem("fail-1", "f"), ItemContext(), 0)
    assert type(raising.exception(timeout=30)).__name__ == "WorkerDied"

    fine = backend.submit(by_name, WorkItem("ok-2", "f"), ItemContext(), 0)
    assert fine.result(timeout=30).rows == 1
