"""A stage stops early by budget, by failed share, or by an error of its plan; the numbers always add up."""

from collections import Counter

import pytest

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import WorkItem
from ingest_assets.runner import Manifest, RunSpec, read_manifest, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import Recording, adds_up, plan_from, plan_of
from ingest_tests.runner.workers import by_name


def test_a_budget_of_zero_stops_on_the_first_failure():
    """With one worker, no item starts after the failure."""
    options = StageOptions(error_budget=0, max_queue=3)
    outcome = run_stage(
        RunSpec(plan_of("ok", "fail", *["ok"] * 50), by_name, options, backend=ThreadBackend(1))
    )

    assert (outcome.succeeded, outcome.failed) == (1, 1)
    assert 0 < outcome.cancelled <= 4
    assert adds_up(outcome)
    assert (
        outcome.cancelled_reason
        == "stopped after 1 of 2 finished items failed: the error budget is 0 (error_budget)"
    )


def test_a_budget_of_two_allows_two():
    """The third failure is one too many."""
    plan = plan_of("fail", "fail", "ok", "fail", "ok", "ok")
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(error_budget=2), backend=ThreadBackend(1)))

    assert (outcome.succeeded, outcome.failed, outcome.cancelled) == (1, 3, 2)
    assert (
        outcome.cancelled_reason
        == "stopped after 3 of 4 finished items failed: the error budget is 2 (error_budget)"
    )


def test_no_budget_never_stops():
    """All items run, although each fails."""
    outcome = run_stage(RunSpec(plan_of(*["fail"] * 40), by_name, StageOptions(), backend=ThreadBackend(2)))

    assert outcome.failed == 40
    assert outcome.cancelled_reason is None


def test_a_stage_with_a_high_failed_share_stops_after_twenty_items():
    """The share of fewer items is too uncertain."""
    options = StageOptions(max_failed_share=0.5, max_queue=5)
    outcome = run_stage(RunSpec(plan_of(*["fail"] * 100), by_name, options, backend=ThreadBackend(1)))

    assert outcome.failed == 20
    assert outcome.cancelled_reason == (
        "stopped because 20 of 20 finished items failed (100%): the limit is 50% (max_failed_share)"
    )


def test_the_first_failure_stops_if_configured():
    """The option is `cancel_on_first_failure`."""
    options = StageOptions(cancel_on_first_failure=True)
    outcome = run_stage(RunSpec(plan_of("ok", "fail", "ok"), by_name, options, backend=ThreadBackend(1)))

    assert outcome.cancelled_reason == "stopped at the first failure, after 2 finished items"
    assert (outcome.succeeded, outcome.failed, outcome.cancelled) == (1, 1, 1)


def test_an_item_that_waits_for_its_retry_is_cancelled_with_the_stage():
    """It has failed once, but not finally."""
    options = StageOptions(retries=5, retry_backoff_s=60, error_budget=0)
    outcome = run_stage(RunSpec(plan_of("missing", "fail"), by_name, options, backend=ThreadBackend(1)))

    assert (outcome.failed, outcome.cancelled, outcome.retries) == (1, 1, 0)


def test_cancelled_items_have_a_row_in_the_manifest(tmp_path):
    """The manifest agrees with the outcome."""
    manifest = Manifest(tmp_path / "manifest.jsonl")
    options = StageOptions(error_budget=0)
    outcome = run_stage(
        RunSpec(plan_of("fail", "ok", "ok"), by_name, options, backend=ThreadBackend(1), manifest=manifest)
    )

    rows = [(row.item_id, row.status) for row in read_manifest(manifest.path)]
    assert rows == [("fail-0", "failed"), ("ok-1", "cancelled"), ("ok-2", "cancelled")]
    assert outcome.cancelled == 2


def test_a_plan_that_raises_ends_the_stage_after_its_hooks(tmp_path):
    """The error is raised to the caller; running items can finish."""

    def items():
        yield from (WorkItem("sleep-0", "f", meta={"seconds": 0.3}), WorkItem("sleep-1", "f"))
        raise ValueError("no such folder")

    hooks, manifest, options = Recording(), Manifest(tmp_path / "manifest.jsonl"), StageOptions(max_queue=1)
    with pytest.raises(ValueError, match="no such folder"):
        run_stage(
            RunSpec(plan_from(items()), by_name, options, hooks, backend=ThreadBackend(1), manifest=manifest)
        )

    (outcome,) = hooks.outcomes
    assert hooks.calls[-1] == "after_stage"
    assert (outcome.scheduled, outcome.succeeded, outcome.cancelled) == (2, 1, 1)
    assert outcome.cancelled_reason == "the plan failed: no such folder"
    rows = {row.item_id: row.status for row in read_manifest(manifest.path)}
    assert rows == {"sleep-0": "done", "sleep-1": "cancelled"}


def test_items_that_finish_within_the_grace_time_count():
    """The budget is exceeded while another item still runs."""
    plan = plan_from([WorkItem("sleep-0", "f", meta={"seconds": 0.3}), WorkItem("fail-1", "f")])
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(error_budget=0), backend=ThreadBackend(2)))

    assert (outcome.succeeded, outcome.failed, outcome.cancelled) == (1, 1, 0)


def test_items_that_cannot_be_submitted_count_as_failures(tmp_path):
    """The stage must not try a failed backend with all items of a long plan."""
    backend, manifest = ThreadBackend(2), Manifest(tmp_path / "manifest.jsonl")
    backend.close(0)
    options = StageOptions(error_budget=1, max_queue=4)
    outcome = run_stage(RunSpec(plan_of(*["ok"] * 50), by_name, options, backend=backend, manifest=manifest))

    assert (outcome.failed, outcome.cancelled) == (2, outcome.scheduled - 2)
    assert {error.code for error in outcome.errors} == {"E_EXECUTION_SUBMIT"}
    assert (
        outcome.cancelled_reason
        == "stopped after 2 of 2 finished items failed: the error budget is 1 (error_budget)"
    )
    statuses = Counter(row.status for row in read_manifest(manifest.path))
    assert statuses == {"failed": 2, "cancelled": outcome.cancelled}


class BrokenAtTheEnd(ThreadBackend):
    """Runs items, and cannot be closed."""

    def close(self, grace_s: float) -> None:
        """Close, and fail."""
        super().close(grace_s)
        raise OSError("the pipe is gone")


def test_a_backend_that_cannot_be_closed_is_a_warning():
    """All items are accounted for by then."""
    outcome = run_stage(RunSpec(plan_of("ok", "fail"), by_name, StageOptions(), backend=BrokenAtTheEnd(1)))

    assert (outcome.succeeded, outcome.failed) == (1, 1)
    assert outcome.warnings == ("the backend's close raised OSError: the pipe is gone",)
