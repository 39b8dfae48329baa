"""A backend that is used for several runs."""

import pytest

from ingest_assets.core.errors import SubmitFailed
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import plan_of
from ingest_tests.runner.workers import by_name, job


def test_a_kept_backend_serves_the_next_run(backend):
    """Its workers still run."""
    for _ in range(2):
        outcome = run_stage(
            RunSpec(plan_of("ok", "fail"), by_name, StageOptions(), backend=backend, keep_backend=True)
        )
        assert (outcome.succeeded, outcome.failed) == (1, 1)

    assert run_stage(RunSpec(plan_of("ok"), by_name, StageOptions(), backend=backend)).succeeded == 1


def test_a_run_that_is_stopped_leaves_no_item_running(backend):
    """The backend is closed, because an item of the old run must not run during the next one."""
    options = StageOptions(cancel_on_first_failure=True, grace_s=0)

    outcome = run_stage(
        RunSpec(plan_of("sleep", "fail"), by_name, options, backend=backend, keep_backend=True)
    )

    assert outcome.cancelled_reason is not None
    with pytest.raises(SubmitFailed, match="closed"):
        backend.submit(job("ok-9"))
