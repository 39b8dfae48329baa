"""The metadata of a stage in the Dagster UI are the numbers of its outcome."""

import pytest

from ingest_assets.app.stage_run import Staged
from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import StageOutcome, WorkItem
from ingest_assets.core.schemas import CHUNKS
from ingest_assets.defs.resources import staged_metadata
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_assets.storage.table import Commit
from ingest_tests.runner.fakes import known_to_fail, plan_from, satisfied
from ingest_tests.runner.workers import by_name


def _outcome(options: StageOptions) -> StageOutcome:
    fresh = [WorkItem(name, "f") for name in ("recovers-0", "ok-1", "fail-2", "ok-3", "ok-4")]
    plan = plan_from([satisfied("s"), known_to_fail("k"), *fresh])
    return run_stage(RunSpec(plan, by_name, options, backend=ThreadBackend(1)))


def _keep() -> None:
    """Do nothing: there is no lock to release."""


@pytest.mark.parametrize(
    "options",
    [StageOptions(retries=1, retry_backoff_s=0), StageOptions(retries=1, retry_backoff_s=9, error_budget=0)],
    ids=["finished", "stopped"],
)
def test_the_metadata_agree_with_the_outcome(options: StageOptions):
    """Every count and time that telemetry has."""
    outcome = _outcome(options)
    metadata = staged_metadata(Staged(Commit(CHUNKS, "b", "1", "c", {}), outcome, _keep))

    assert outcome.known_failures == 1
    assert bool(outcome.cancelled) == (options.error_budget == 0)
    names = (
        "scheduled",
        "skipped",
        "succeeded",
        "failed",
        "cancelled",
        "retries",
        "known_failures",
        "workers",
    )
    assert {name: metadata[name] for name in names} == {name: getattr(outcome, name) for name in names}
    for kind, percentiles in (("queue", outcome.queue_s), ("exec", outcome.exec_s)):
        assert metadata[f"{kind}_p50_seconds"] == pytest.approx(percentiles.p50, abs=1e-6)
        assert metadata[f"{kind}_p95_seconds"] == pytest.approx(percentiles.p95, abs=1e-6)
    assert metadata["items_per_second"] == pytest.approx(outcome.items_per_s, abs=1e-3)
    assert [error["item_id"] for error in metadata["errors"].value] == [e.item_id for e in outcome.errors]
