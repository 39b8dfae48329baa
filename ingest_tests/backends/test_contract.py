"""One contract for all backends: a stage survives and explains whatever an item does."""

import pytest

from ingest_assets.core.items import StageOutcome
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import adds_up, plan_of
from ingest_tests.runner.workers import by_name

# Less than the minute that items sleep; workers can start slowly on a busy machine.
NOT_A_MINUTE_S = 45


def codes(outcome: StageOutcome) -> dict[str, str]:
    """Return the error code by item."""
    return {error.item_id: error.code for error in outcome.errors}


def test_good_items_are_counted_with_their_rows(backend):
    """All items succeed."""
    outcome = run_stage(RunSpec(plan_of(*["ok"] * 10), by_name, StageOptions(), backend=backend))

    assert (outcome.scheduled, outcome.succeeded, outcome.rows) == (10, 10, 10)
    assert outcome.counts == {"pages": 20}
    assert outcome.errors == ()
    assert outcome.workers == 2


def test_a_failing_item_is_data_and_its_neighbours_run(backend):
    """One bad document does not affect the others."""
    outcome = run_stage(RunSpec(plan_of("ok", "fail", "ok", "ok"), by_name, StageOptions(), backend=backend))

    assert (outcome.succeeded, outcome.failed) == (3, 1)
    (error,) = outcome.errors
    assert (error.item_id, error.category, error.code) == ("fail-1", "contract", "E_CONTRACT")
    assert error.message == "fail-1 is no good"
    assert error.detail == {"item": "fail-1"}


def test_a_hanging_item_ends_at_its_limit_and_its_neighbours_run(backend):
    """Twenty good items run next to one that sleeps for a minute."""
    plan = plan_of(*["ok"] * 10, "sleep", *["ok"] * 10)
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(per_item_timeout_s=1), backend=backend))

    assert (outcome.succeeded, outcome.failed) == (20, 1)
    (error,) = outcome.errors
    assert (error.category, error.code, error.retryable) == ("timeout", "E_TIMEOUT", True)
    assert error.message == "exceeded its time limit of 1 s"
    assert outcome.wall_s < NOT_A_MINUTE_S


@pytest.mark.parametrize(
    ("action", "code", "message"),
    [
        ("odd", "E_UNKNOWN", "Unpicklable: held together by a lock"),
        ("unknown", "E_UNKNOWN", "ZeroDivisionError: cannot divide by <object>"),
        ("leave", "E_UNKNOWN", "SystemExit: 3"),
        (
            "lock",
            "E_CONTRACT",
            "the worker's result cannot be pickled: TypeError: cannot pickle '_thread.lock' object",
        ),
        ("none", "E_CONTRACT", "the worker returned NoneType, not a Result"),
    ],
)
def test_any_exception_or_invalid_result_of_a_worker_fails_only_its_item(backend, action, code, message):
    """Errors and results can be impossible to pickle, and results can have the wrong type."""
    outcome = run_stage(RunSpec(plan_of("ok", action, "ok"), by_name, StageOptions(), backend=backend))

    assert outcome.succeeded == 2
    assert codes(outcome) == {f"{action}-1": code}
    assert outcome.errors[0].message == message
    assert not outcome.errors[0].retryable


def test_a_worker_that_prints_corrupts_nothing(backend):
    """Libraries print."""
    outcome = run_stage(RunSpec(plan_of("print", "ok", "print"), by_name, StageOptions(), backend=backend))

    assert outcome.succeeded == 3


def test_a_worker_knows_its_attempt_and_its_deadline(backend):
    """A worker can stop by itself in time."""
    options = StageOptions(per_item_timeout_s=50)
    outcome = run_stage(RunSpec(plan_of("deadline"), by_name, options, backend=backend))

    assert outcome.counts == {"attempt": 1, "left_s": 50}


def test_retryable_errors_are_retried(backend):
    """The second attempt succeeds."""
    options = StageOptions(retries=2, retry_backoff_s=0.01)
    outcome = run_stage(RunSpec(plan_of("recovers", "ok", "recovers"), by_name, options, backend=backend))

    assert (outcome.succeeded, outcome.failed, outcome.retries) == (3, 0, 2)


def test_an_empty_plan_is_valid(backend):
    """The stage has nothing to do."""
    outcome = run_stage(RunSpec(plan_of(), by_name, StageOptions(), backend=backend))

    assert outcome.scheduled == 0
    assert adds_up(outcome)


def test_cancelling_gives_running_items_their_grace(backend):
    """The failure stops the stage; the running short item finishes, and queued items do not start."""
    plan = plan_of("fail", *["sleep"] * 30, meta={"seconds": 0.5})
    options = StageOptions(error_budget=0, max_queue=10, grace_s=60)
    outcome = run_stage(RunSpec(plan, by_name, options, backend=backend))

    assert outcome.failed == 1
    assert outcome.cancelled > 0
    assert adds_up(outcome)
    assert outcome.cancelled_reason is not None
    assert "the error budget is 0" in outcome.cancelled_reason
    assert outcome.wall_s < NOT_A_MINUTE_S


def test_the_grace_time_ends(backend):
    """An item that sleeps for a minute does not delay a cancelled stage."""
    options = StageOptions(cancel_on_first_failure=True, grace_s=0.3)
    outcome = run_stage(RunSpec(plan_of("sleep", "fail", "ok"), by_name, options, backend=backend))

    assert (outcome.failed, outcome.cancelled + outcome.succeeded) == (1, 2)
    assert outcome.cancelled >= 1
    assert adds_up(outcome)
    assert outcome.wall_s < NOT_A_MINUTE_S
