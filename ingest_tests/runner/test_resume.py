"""Which items run: resume, known failures, force with quarantine, dry run."""

import json
from dataclasses import replace

import pytest

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import ItemContext, Plan, Record, Result, WorkItem
from ingest_assets.runner import Manifest, Quarantine, RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import Recording, known_to_fail, plan_from, plan_of, satisfied
from ingest_tests.runner.workers import Writing, by_name


def mixed() -> Plan:
    """Return a plan with one item of each kind."""
    return plan_from(
        [
            satisfied("ok-0"),
            known_to_fail("fail-1"),
            known_to_fail("ok-2", retryable=True),
            WorkItem("ok-3", "f"),
        ]
    )


def test_resume_skips_current_items_and_permanent_failures():
    """A known failure does not count as failed; a retryable one runs again."""
    outcome = run_stage(RunSpec(mixed(), by_name, StageOptions(), backend=ThreadBackend(2)))

    assert (outcome.scheduled, outcome.succeeded, outcome.failed) == (2, 2, 0)
    assert (outcome.skipped, outcome.known_failures) == (2, 1)
    assert outcome.errors == ()


@pytest.mark.parametrize("options", [StageOptions(), StageOptions(resume=False), StageOptions(force=True)])
def test_items_on_hold_never_run(options):
    """Other items were selected for a retry; a finished part still counts."""
    held = [replace(known_to_fail(name, retryable=True), on_hold=True) for name in ("ok-0", "ok-1")]
    staged = replace(held[1], record=Record("f", 1))

    outcome = run_stage(
        RunSpec(
            plan_from([held[0], staged, WorkItem("ok-2", "f")]), by_name, options, backend=ThreadBackend(1)
        )
    )

    assert (outcome.succeeded, outcome.skipped, outcome.known_failures) == (1, 2, 1)


def test_without_resume_everything_runs():
    """Known failures run too."""
    outcome = run_stage(RunSpec(mixed(), by_name, StageOptions(resume=False), backend=ThreadBackend(2)))

    assert (outcome.scheduled, outcome.succeeded, outcome.failed, outcome.skipped) == (4, 3, 1, 0)


@pytest.mark.parametrize(
    ("options", "is_forced"),
    [(StageOptions(), False), (StageOptions(resume=False), True), (StageOptions(force=True), True)],
)
def test_a_worker_knows_when_stored_results_must_not_be_reused(options, is_forced):
    """The context's `force` is set with `force` and without `resume`."""
    forced = []

    def worker(item: WorkItem, context: ItemContext) -> Result:
        forced.append(context.force)
        return Result(rows=1)

    run_stage(RunSpec(plan_of("ok-0"), worker, options, backend=ThreadBackend(1)))

    assert forced == [is_forced]


def test_a_dry_run_returns_verdicts_and_changes_nothing(tmp_path):
    """Neither manifest, hooks nor worker are used."""
    hooks = Recording()
    outcome = run_stage(
        RunSpec(
            mixed(),
            by_name,
            StageOptions(dry_run=True),
            hooks,
            backend=ThreadBackend(2),
            manifest=Manifest(tmp_path / "manifest.jsonl"),
            progress=hooks,
        )
    )

    assert (outcome.scheduled, outcome.skipped, outcome.known_failures) == (0, 2, 1)
    assert outcome.verdicts == {"ok-0": "skip", "fail-1": "known_failure", "ok-2": "run", "ok-3": "run"}
    assert hooks.calls == []
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_with_force_would_run_everything():
    """The verdicts follow the options."""
    outcome = run_stage(
        RunSpec(mixed(), by_name, StageOptions(dry_run=True, force=True), backend=ThreadBackend(1))
    )
    assert set(outcome.verdicts.values()) == {"run"}


def test_force_moves_old_output_to_quarantine(tmp_path):
    """A second run does not overwrite the quarantine of the first."""
    output = tmp_path / "out.txt"
    output.write_text("old", encoding="utf-8")
    plan = plan_of("a", output_paths=(str(output),))
    for _ in range(2):
        outcome = run_stage(
            RunSpec(
                plan,
                Writing(),
                StageOptions(force=True),
                backend=ThreadBackend(1),
                quarantine=Quarantine(tmp_path / "quarantine"),
            )
        )
        assert outcome.succeeded == 1

    assert output.read_text(encoding="utf-8") == "new a-0"
    kept = sorted((tmp_path / "quarantine").rglob("*out.txt"))
    assert [path.read_text(encoding="utf-8") for path in kept] == ["old", "new a-0"]
    origin = json.loads((kept[0].parent / "origin.json").read_text(encoding="utf-8"))
    assert origin == {"item_id": "a-0", "outputs": [str(output)]}


def test_without_force_nothing_goes_to_quarantine(tmp_path):
    """A rerun of a stale item replaces its output."""
    output = tmp_path / "out.txt"
    output.write_text("old", encoding="utf-8")
    plan = plan_of("a", output_paths=(str(output),))
    run_stage(
        RunSpec(
            plan,
            Writing(),
            StageOptions(),
            backend=ThreadBackend(1),
            quarantine=Quarantine(tmp_path / "quarantine"),
        )
    )

    assert not (tmp_path / "quarantine").exists()


def test_an_item_whose_output_cannot_be_moved_does_not_run(tmp_path):
    """The old output must not be lost."""
    output = tmp_path / "out.txt"
    output.write_text("old", encoding="utf-8")
    (tmp_path / "quarantine").write_text("a file where the folder should be", encoding="utf-8")
    outcome = run_stage(
        RunSpec(
            plan_of("a", output_paths=(str(output),)),
            Writing(),
            StageOptions(force=True),
            backend=ThreadBackend(1),
            quarantine=Quarantine(tmp_path / "quarantine"),
        )
    )

    assert [error.code for error in outcome.errors] == ["E_QUARANTINE"]
    assert output.read_text(encoding="utf-8") == "old"


def test_a_plan_is_consumed_lazily():
    """At most the queue, the workers and one more item are read ahead."""
    taken, ahead = 0, []

    def items():
        nonlocal taken
        for number in range(500):
            taken += 1
            yield WorkItem(f"ok-{number}", "f")

    class Watching(Recording):
        finished = 0

        def after_item(self, item, result, error):
            self.finished += 1
            ahead.append(taken - self.finished)

    run_stage(
        RunSpec(plan_from(items()), by_name, StageOptions(max_queue=10), Watching(), backend=ThreadBackend(2))
    )

    assert taken == 500
    assert max(ahead) <= 10 + 2 + 1


def test_many_skipped_items_do_not_delay_results():
    """The first item's result is recorded long before a million items are skipped."""
    seen_after = []
    taken = 0

    def items():
        nonlocal taken
        yield WorkItem("ok-0", "f")
        for _ in range(100_000):
            taken += 1
            yield satisfied("s")

    class Watching(Recording):
        def after_item(self, item, result, error):
            seen_after.append(taken)

    outcome = run_stage(
        RunSpec(plan_from(items()), by_name, StageOptions(), Watching(), backend=ThreadBackend(1))
    )
    assert outcome.skipped == 100_000
    assert seen_after[0] < 100_000


def test_skipped_items_leave_nothing_in_memory():
    """Memory stays constant for two hundred thousand current items."""
    import tracemalloc

    plan = plan_from(satisfied(f"s-{number}") for number in range(200_000))
    tracemalloc.start()
    try:
        outcome = run_stage(RunSpec(plan, by_name, StageOptions(), backend=ThreadBackend(1)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert outcome.skipped == 200_000
    assert peak < 2 * 2**20
