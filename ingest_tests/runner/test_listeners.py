"""Hooks and progress are called in order, and their errors do not stop a stage."""

import logging

import pytest
from rich.console import Console

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import Result, StageOutcome
from ingest_assets.runner import BarProgress, LogProgress, RunSpec, run_stage
from ingest_assets.runner.progress import as_clock, progress_line
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import Recording, plan_of
from ingest_tests.runner.workers import by_name


def test_hooks_are_called_around_the_stage_and_its_items():
    """The coordinator calls them in order."""
    hooks = Recording()
    run_stage(RunSpec(plan_of("ok", "fail"), by_name, StageOptions(), hooks, backend=ThreadBackend(1)))

    assert hooks.calls == [
        "before_stage",
        "before_item ok-0",
        "after_item ok-0 done",
        "before_item fail-1",
        "after_item fail-1 E_CONTRACT",
        "after_stage",
    ]


def test_hooks_are_called_once_for_a_retried_item():
    """They are called before the first attempt and after the last."""
    hooks = Recording()
    options = StageOptions(retries=1, retry_backoff_s=0)
    run_stage(RunSpec(plan_of("recovers"), by_name, options, hooks, backend=ThreadBackend(1)))

    assert hooks.calls == [
        "before_stage",
        "before_item recovers-0",
        "after_item recovers-0 done",
        "after_stage",
    ]


@pytest.mark.parametrize("hook", ["before_stage", "before_item", "after_item", "after_stage"])
def test_a_failing_hook_is_a_warning(hook, caplog):
    """The item does not fail."""
    with caplog.at_level(logging.WARNING):
        outcome = run_stage(
            RunSpec(
                plan_of("ok"), by_name, StageOptions(), Recording(raising=[hook]), backend=ThreadBackend(1)
            )
        )

    assert (outcome.succeeded, outcome.failed) == (1, 0)
    assert any(f"RuntimeError: {hook} is broken" in warning for warning in outcome.warnings)
    assert f"{hook} is broken" in caplog.text


@pytest.mark.parametrize("call", ["start", "update", "finish"])
def test_a_failing_progress_display_is_a_warning(call):
    """A closed terminal must not stop a stage."""
    progress = Recording(raising=[call])
    outcome = run_stage(
        RunSpec(plan_of("ok"), by_name, StageOptions(), backend=ThreadBackend(1), progress=progress)
    )

    assert outcome.succeeded == 1
    assert any(f"{call} is broken" in warning for warning in outcome.warnings)


def test_workers_warnings_name_their_item():
    """At most a hundred are kept."""

    def warns(item, context):
        return Result(warnings=("page 3 was empty",))

    outcome = run_stage(RunSpec(plan_of(*["a"] * 130), warns, StageOptions(), backend=ThreadBackend(1)))
    assert outcome.warnings[0] == "a-0: page 3 was empty"
    assert outcome.warnings[-1] == "and 30 more warnings"
    assert len(outcome.warnings) == 101


def test_the_progress_line_has_counts_rate_and_eta():
    """The ETA needs a total."""
    line = progress_line("doctags", 500, 120, 110, 8, 2, elapsed_s=112 / 3.4)
    assert line == "doctags 120/500 | 110 done, 8 skipped, 2 failed | 3.4 items/s | ETA 1:52"
    assert (
        progress_line("doctags", None, 3, 3, 0, 0, 1)
        == "doctags 3 | 3 done, 0 skipped, 0 failed | 3.0 items/s"
    )
    assert as_clock(3712) == "1:01:52"


def test_log_progress_writes_a_line_per_interval():
    """The number of updates does not matter."""
    now, lines = [0.0], []
    progress = LogProgress(lines.append, interval_s=10, clock=lambda: now[0])
    progress.start("doctags", 100)
    for second in range(25):
        now[0] = float(second)
        progress.update(second, second, 0, 0)
    progress.finish(StageOutcome(stage="doctags", scheduled=25, succeeded=25, wall_s=25, items_per_s=1))

    assert lines == [
        "doctags 10/100 | 10 done, 0 skipped, 0 failed | 1.0 items/s | ETA 1:30",
        "doctags 20/100 | 20 done, 0 skipped, 0 failed | 1.0 items/s | ETA 1:20",
        "doctags: 25 done, 0 skipped, 0 failed in 0:25 | 1.0 items/s",
    ]


def test_progress_ends_at_the_plan_s_length():
    """The last update counts everything, skipped items included."""
    progress = Recording()
    run_stage(
        RunSpec(plan_of("ok", "fail"), by_name, StageOptions(), backend=ThreadBackend(1), progress=progress)
    )

    assert progress.calls[0] == "start"
    assert progress.calls[-2:] == ["update 2 1 0 1", "finish"]


def test_the_bar_draws_on_its_console_and_leaves_one_line(tmp_path):
    """The console here is a file that reports to be a terminal."""
    with (tmp_path / "screen").open("w", encoding="utf-8") as screen:
        bar = BarProgress(Console(file=screen, force_terminal=True, width=120))
        run_stage(
            RunSpec(plan_of("ok", "fail"), by_name, StageOptions(), backend=ThreadBackend(1), progress=bar)
        )

    assert "stage: 1 done, 0 skipped, 1 failed in 0:00" in (tmp_path / "screen").read_text(encoding="utf-8")
