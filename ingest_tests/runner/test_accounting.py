"""`scheduled = succeeded + failed + cancelled` for any plan and any options."""

import random
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import WorkItem
from ingest_assets.runner import Manifest, RunSpec, read_manifest, run_stage
from ingest_assets.runner.reporter import Reservoir
from ingest_assets.settings.execution import StageOptions
from ingest_tests.conftest import examples_times
from ingest_tests.runner.fakes import Recording, adds_up, known_to_fail, plan_from, plan_of, satisfied
from ingest_tests.runner.workers import by_name

KINDS = ["ok", "ok", "fail", "missing", "recovers", "unknown", "skip", "known"]

plans = st.lists(st.sampled_from(KINDS), max_size=60)
options = st.builds(
    StageOptions,
    retries=st.integers(0, 2),
    retry_backoff_s=st.sampled_from([0.0, 0.001]),
    error_budget=st.none() | st.integers(0, 5),
    max_failed_share=st.none() | st.floats(0.05, 1),
    cancel_on_first_failure=st.booleans(),
    max_queue=st.integers(1, 10),
    resume=st.booleans(),
    force=st.booleans(),
    schedule=st.sampled_from(["fifo", "sjf"]),
    grace_s=st.sampled_from([0.0, 0.05]),
)


def item_of(number: int, kind: str) -> WorkItem:
    """Return an item of this kind."""
    if kind == "skip":
        return satisfied(f"ok-{number}")
    if kind == "known":
        return known_to_fail(f"fail-{number}")
    return WorkItem(f"{kind}-{number}", "f", cost_hint=float(number * 7 % 5))


@examples_times(2)
@given(plans, options, st.integers(1, 4))
def test_the_numbers_add_up_and_agree_in_all_reports(kinds, stage_options, workers):
    """The outcome, the manifest and the hooks report the same numbers."""
    hooks = Recording()
    with tempfile.TemporaryDirectory() as folder:
        manifest = Manifest(Path(folder) / "manifest.jsonl")
        outcome = run_stage(
            RunSpec(
                plan_from(item_of(number, kind) for number, kind in enumerate(kinds)),
                by_name,
                stage_options,
                hooks,
                backend=ThreadBackend(workers),
                manifest=manifest,
                rng=random.Random(1),
            )
        )
        last = {row.item_id: row.status for row in read_manifest(manifest.path)}

    assert adds_up(outcome)
    assert len(outcome.errors) == outcome.failed
    assert Counter(last.values()) == Counter(
        {"done": outcome.succeeded, "failed": outcome.failed, "cancelled": outcome.cancelled}
    )
    ended = [call for call in hooks.calls if call.startswith("after_item")]
    assert len(ended) == outcome.succeeded + outcome.failed
    assert outcome.rows == outcome.succeeded
    if outcome.cancelled_reason is None:
        assert outcome.cancelled == 0
        assert outcome.scheduled + outcome.skipped == len(kinds)
    if stage_options.error_budget is not None and outcome.failed > stage_options.error_budget:
        assert outcome.cancelled_reason is not None
    if stage_options.force or not stage_options.resume:
        assert outcome.skipped == 0


def test_percentiles_are_exact_while_they_fit_and_close_when_they_do_not():
    """A sample of a thousand represents a hundred thousand; equal seeds give equal samples."""
    small = Reservoir(random.Random(1))
    for value in range(1, 101):
        small.add(float(value))
    assert (small.percentiles().p50, small.percentiles().p95, small.percentiles().p99) == (51, 96, 100)

    large, twin = Reservoir(random.Random(2)), Reservoir(random.Random(2))
    for value in range(100_000):
        large.add(float(value))
        twin.add(float(value))
    assert abs(large.percentiles().p50 - 50_000) < 6_000
    assert large.percentiles() == twin.percentiles()


def test_times_and_rates_are_reported():
    """The outcome has times in seconds and a throughput."""
    plan = plan_from([WorkItem("sleep-0", "f", meta={"seconds": 0.05})])
    outcome = run_stage(
        RunSpec(plan, by_name, StageOptions(), backend=ThreadBackend(1), workers_reason="1: a test")
    )

    assert outcome.exec_s.p50 >= 0.05
    assert outcome.wall_s >= outcome.exec_s.p50
    assert outcome.items_per_s > 0
    assert outcome.cpu_s < outcome.wall_s
    assert outcome.workers_reason == "1: a test"


def test_a_message_of_many_lines_is_recorded_as_one():
    """Lists show one line per failure."""

    def verbose(item, context):
        raise ValueError("the model\n\n   said:\r\n\tno")

    outcome = run_stage(RunSpec(plan_of("ok"), verbose, StageOptions(), backend=ThreadBackend(1)))

    assert [error.message for error in outcome.errors] == ["ValueError: the model said: no"]
