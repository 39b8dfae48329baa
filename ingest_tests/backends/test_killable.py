"""The contract of backends whose workers can be killed: native code can hang, crash and fork."""

from collections import Counter

import pytest

from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.backends.ended import all_gone
from ingest_tests.runner.fakes import plan_of
from ingest_tests.runner.workers import Unimportable, by_name, job


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("kill", "the worker process died (signal SIGKILL)"),
        ("crash", "the worker process died (signal SIGSEGV)"),
        ("exit0", "the worker process died (exit code 0)"),
        ("exit7", "the worker process died (exit code 7)"),
        ("close", "the worker process died (exit code 0)"),
    ],
)
def test_a_dying_worker_fails_only_its_item(killable, action, message):
    """Causes are a segfault, the out-of-memory killer, a library that exits, an item that closes our pipe."""
    outcome = run_stage(RunSpec(plan_of("ok", action, "ok", "ok"), by_name, StageOptions(), backend=killable))

    assert (outcome.succeeded, outcome.failed) == (3, 1)
    (error,) = outcome.errors
    assert (error.category, error.code, error.retryable) == ("runtime", "E_WORKER_DIED", True)
    assert error.message == message


def test_many_dying_workers_fail_exactly_their_items(killable):
    """Ten of two hundred items kill their process."""
    names = ["kill" if number % 20 == 5 else "ok" for number in range(200)]
    outcome = run_stage(RunSpec(plan_of(*names), by_name, StageOptions(), backend=killable))

    assert (outcome.succeeded, outcome.failed, outcome.cancelled) == (190, 10, 0)
    assert Counter(error.code for error in outcome.errors) == {"E_WORKER_DIED": 10}
    assert [error.item_id for error in outcome.errors] == [f"kill-{n}" for n in range(5, 200, 20)]


def test_items_that_hang_in_c_are_killed_at_once_at_their_limit(killable):
    """Four items block signals and hold the GIL, two at a time; the good ones finish."""
    plan = plan_of(*["ok"] * 10, *["stuck"] * 4, *["ok"] * 10)
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(per_item_timeout_s=1), backend=killable))

    assert (outcome.succeeded, outcome.failed) == (20, 4)
    assert Counter(error.category for error in outcome.errors) == {"timeout": 4}
    assert outcome.wall_s < 30


def test_an_item_that_forks_has_one_result(killable):
    """Both processes return from the worker; the child ends without a result."""
    outcome = run_stage(RunSpec(plan_of(*["fork"] * 3, "ok"), by_name, StageOptions(), backend=killable))

    assert (outcome.succeeded, outcome.failed) == (4, 0)


def test_a_worker_that_cannot_be_imported_in_the_process_fails_its_item(killable):
    """The message is that of the import, and the process stays usable."""
    outcome = run_stage(RunSpec(plan_of("ok", "ok"), Unimportable(), StageOptions(), backend=killable))

    assert outcome.failed == 2
    assert outcome.errors[0].message == "ImportError: libGL.so.1: cannot open shared object file"


def test_an_item_that_cannot_be_pickled_fails_alone(killable):
    """It is not sent to a process."""
    plan = plan_of("ok", meta={"lambda": lambda: None})
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(), backend=killable))

    assert [error.code for error in outcome.errors] == ["E_EXECUTION_SUBMIT"]


def test_workers_have_the_current_environment_variables(killable, monkeypatch):
    """The fork server or the cluster was started before the change."""
    monkeypatch.setenv("INGEST_TEST_VALUE", "42")

    outcome = run_stage(RunSpec(plan_of("env"), by_name, StageOptions(), backend=killable))
    assert outcome.counts == {"value": 42}


def test_workers_are_reused_for_later_items(killable):
    """A converter is loaded once per worker, not once per document."""
    ids = [killable.submit(job("pid-1")) for _ in range(20)]

    assert len({killable.get_result(job_id, 60).counts["pid"] for job_id in ids}) <= 2


def test_child_processes_of_an_item_are_killed_with_it(killable, tmp_path):
    """A converter that runs as a program ends at the item's limit."""
    note = tmp_path / "pid"
    plan = plan_of("start", meta={"note": str(note)})
    outcome = run_stage(RunSpec(plan, by_name, StageOptions(per_item_timeout_s=1), backend=killable))

    assert [error.code for error in outcome.errors] == ["E_TIMEOUT"]
    assert all_gone([int(note.read_text())], within_s=10)
