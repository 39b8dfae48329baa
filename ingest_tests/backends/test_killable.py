"""The contract of backends whose workers can be killed: native code may hang, crash and fork."""

from collections import Counter

import pytest

from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.backends.ended import all_gone
from ingest_tests.runner.fakes import plan_of
from ingest_tests.runner.workers import Unimportable, by_name


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("kill", "the worker process died (signal SIGKILL)"),
        ("crash", "the worker process died (signal SIGSEGV)"),
        ("exit0", "the worker process died (exit code 0)"),
        ("exit7", "the worker process died (exit code 7)"),
        ("close", "the worker process died (exit code 0)"),
    ],
)
def test_a_dying_worker_costs_its_own_item(killable, deed, words):
    """A segfault, the out-of-memory killer, a library that exits, an item that closes our pipe."""
    outcome = run_stage(RunSpec(plan_of("ok", deed, "ok", "ok"), by_name, StageOptions(), backend=killable))

    assert (outcome.succeeded, outcome.failed) == (3, 1)
    (error,) = outcome.errors
    assert (error.category, error.code, error.retryable) == ("runtime", "E_WORKER_DIED", True)
    assert error.message == words


def test_many_deaths_cost_exactly_their_items(killable):
    """Two hundred items of which ten kill their process."""
    names = ["kill" if number % 20 == 5 else "ok" for number in range(200)]
    outcome = run_stage(RunSpec(plan_of(*names), by_name, StageOptions(), backend=killable))

    assert (outcome.succeeded, outcome.failed, outcome.cancelled) == (190, 10, 0)
    assert Counter(error.code for error in outcome.errors) == {"E_WORKER_DIED": 10}
    assert [error.item_id for error in outcome.errors] == [f"kill-{n}" for n in range(5, 200, 20)]


def test_items_stuck_in_c_are_killed_at_their_limit_and_at_once(killable):
    """Signals blocked, interpreter locked: four of them, two at a time, and the good ones finish."""
    plan = plan_of(*["ok"] * 10, *["stuck"] * 4, *["ok"] * 10)
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(per_item_timeout_s=1), backend=killable))

    assert (outcome.succeeded, outcome.failed) == (20, 4)
    assert Counter(error.category for error in outcome.errors) == {"timeout": 4}
    assert outcome.wall_s < 30


def test_an_item_that_forks_answers_once(killable):
    """Both copies come back from the worker; one of them is ours."""
    outcome = run_stage(RunSpec(plan_of(*["fork"] * 3, "ok"), by_name, StageOptions(), backend=killable))

    assert (outcome.succeeded, outcome.failed) == (4, 0)


def test_a_worker_that_does_not_import_over_there_fails_as_an_item(killable):
    """The message is the import's own, and the process lives on."""
    outcome = run_stage(RunSpec(plan_of("ok", "ok"), Unimportable(), StageOptions(), backend=killable))

    assert outcome.failed == 2
    assert outcome.errors[0].message == "ImportError: libGL.so.1: cannot open shared object file"


def test_an_item_that_does_not_pickle_fails_alone(killable):
    """It never reaches a process."""
    plan = plan_of("ok", meta={"lambda": lambda: None})
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(), backend=killable))

    assert [error.code for error in outcome.errors] == ["E_EXECUTION_SUBMIT"]


def test_workers_see_the_environment_as_it_is_now(killable, monkeypatch):
    """A fork server or a cluster was started long before."""
    monkeypatch.setenv("INGEST_TEST_VALUE", "42")

    outcome = run_stage(RunSpec(plan_of("env"), by_name, StageOptions(), backend=killable))
    assert outcome.counts == {"value": 42}


def test_workers_stay_warm_between_items(killable):
    """A converter is loaded once per worker, not once per document."""
    futures = [killable.submit(by_name, WorkItem("pid-1", "f"), ItemContext(), 0) for _ in range(20)]

    assert len({future.result(timeout=60).counts["pid"] for future in futures}) <= 2


def test_what_an_item_started_is_killed_with_it(killable, tmp_path):
    """A converter that was called as a program does not outlive its item's limit."""
    note = tmp_path / "pid"
    plan = plan_of("start", meta={"note": str(note)})
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(per_item_timeout_s=1), backend=killable))

    assert [error.code for error in outcome.errors] == ["E_TIMEOUT"]
    assert all_gone([int(note.read_text())], within_s=10)
