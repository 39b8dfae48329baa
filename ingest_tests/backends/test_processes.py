"""Guarantees of processes only: they can die, be killed, and always end with the coordinator."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ingest_assets.backends import ProcessBackend
from ingest_assets.core.errors import StageError
from ingest_assets.runner import RunSpec, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.backends.ended import all_gone, is_running
from ingest_tests.runner.fakes import plan_of
from ingest_tests.runner.workers import by_name, job


def test_a_worker_killed_while_idle_fails_no_item():
    """The out-of-memory killer can act between two items."""
    backend = ProcessBackend(1)
    try:
        first = backend.get_result(backend.submit(job("pid-1")), 30)
        os.kill(first.counts["pid"], signal.SIGKILL)
        second = backend.get_result(backend.submit(job("pid-2")), 30)
    finally:
        backend.close(0)

    assert second.counts["pid"] != first.counts["pid"]


def test_one_worker_is_reused_for_all_items():
    """All items run in one process."""
    assert len(set(_pids(ProcessBackend(1), items=4))) == 1


def test_the_coordinator_keeps_collecting_garbage():
    """Garbage collection is disabled in the fork server only."""
    assert gc.isenabled()


def test_spawned_processes_behave_in_the_same_way():
    """They are used if there is no fork server."""
    backend = ProcessBackend(1, start_method="spawn")
    outcome = run_stage(RunSpec(plan_of("ok", "kill", "ok"), by_name, StageOptions(), backend=backend))

    assert (outcome.succeeded, outcome.failed) == (2, 1)


def test_an_item_above_the_memory_limit_fails_alone():
    """Its process is killed; the items before and after it run."""
    backend = ProcessBackend(1, start_method="spawn", max_mebibytes=250)
    outcome = run_stage(
        RunSpec(plan_of("ok", "grow", "ok", "grow"), by_name, StageOptions(), backend=backend)
    )

    assert (outcome.succeeded, outcome.failed) == (2, 2)
    error = outcome.errors[0]
    assert (error.category, error.code, error.retryable) == ("runtime", "E_RESOURCE_MEMORY", False)
    assert error.message == "exceeded the memory limit of 250 MiB (execution.max_worker_mebibytes)"


def test_an_item_does_not_fail_because_of_memory_of_earlier_items():
    """In a process that earlier items have filled, it is retried in a new one."""
    pids = _pids(ProcessBackend(1, start_method="spawn", max_mebibytes=500), items=3, item_id="grow-1")

    assert len(set(pids)) == 3


def test_a_memory_error_of_python_has_the_same_code():
    """Either Python or the memory check can detect it first."""
    record = StageError.of(MemoryError(), stage="doctags", item_id="a")

    assert (record.code, record.category, record.retryable) == ("E_RESOURCE_MEMORY", "runtime", False)


def test_what_workers_print_goes_to_standard_error(capfd):
    """Standard output is for `--json`."""
    run_stage(
        RunSpec(plan_of("print"), by_name, StageOptions(), backend=ProcessBackend(1, start_method="spawn"))
    )

    captured = capfd.readouterr()
    assert captured.out == ""
    assert "a worker prints\nand its libraries too\n" in captured.err


def test_closing_leaves_no_process_behind():
    """Workers can be idle, busy or hanging."""
    # The fork server continues to run.
    run_stage(RunSpec(plan_of("ok"), by_name, StageOptions(), backend=ProcessBackend(1)))
    before = set(_children())
    backend = ProcessBackend(3)
    first, *_ = [backend.submit(job(name)) for name in _MIXED]
    backend.get_result(first, 30)
    time.sleep(0.5)
    during = set(_children()) - before
    backend.close(0)

    assert len(during) == 3
    assert not [child for child in during if is_running(child.pid)]


def test_a_fork_of_a_process_that_had_a_fork_server_still_runs_stages(tmp_path):
    """An orchestrator can fork its run workers from such a process."""
    path = tmp_path / "forks.py"
    path.write_text(_FORKING, encoding="utf-8")
    ran = subprocess.run([sys.executable, path], env=_env(), timeout=60, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()


@pytest.mark.chaos
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_a_killed_coordinator(tmp_path, how):
    """Busy workers, one of which holds the GIL, end soon after their coordinator."""
    coordinator = _start_coordinator(tmp_path)
    try:
        workers = _wait_for_workers(tmp_path, 2)
        coordinator.send_signal(how)
        coordinator.wait(timeout=30)
        assert all_gone(workers, within_s=15)
    finally:
        coordinator.kill()


@pytest.mark.chaos
def test_ctrl_c_in_the_terminal_reaches_the_coordinator_only(tmp_path):
    """The terminal signals the whole group; the coordinator stops its workers and ends."""
    coordinator = _start_coordinator(tmp_path)
    try:
        workers = _wait_for_workers(tmp_path, 2)
        os.killpg(coordinator.pid, signal.SIGINT)
        _, errors = coordinator.communicate(timeout=30)
        assert b"KeyboardInterrupt" in errors
        assert all_gone(workers, within_s=15)
    finally:
        coordinator.kill()


def test_a_coordinator_that_does_not_close_its_backend_ends(tmp_path):
    """The processes are stopped at the end of the interpreter."""
    script = (
        "from ingest_assets.backends import ProcessBackend\n"
        "from ingest_tests.runner.workers import job\n"
        "if __name__ == '__main__':\n"
        "    backend = ProcessBackend(2)\n"
        "    backend.submit(job('sleep-1'))\n"
        "    backend.get_result(backend.submit(job('ok-2')))\n"
    )
    path = tmp_path / "forgets.py"
    path.write_text(script, encoding="utf-8")
    assert subprocess.run([sys.executable, path], env=_env(), timeout=30).returncode == 0


_MIXED = ("ok-1", "sleep-2", "stuck-3")

_FORKING = """
import os
import sys
from ingest_assets.backends import ProcessBackend
from ingest_assets.settings.execution import StageOptions
from ingest_assets.runner import RunSpec, run_stage
from ingest_tests.backends.ended import all_gone, is_running
from ingest_tests.runner.fakes import plan_of
from ingest_tests.runner.workers import by_name

def run():
    return run_stage(RunSpec(plan_of("ok", "kill", "ok"), by_name, StageOptions(), backend=ProcessBackend(2)))

if __name__ == "__main__":
    assert run().succeeded == 2
    child = os.fork()
    if child == 0:
        os._exit(0 if run().succeeded == 2 else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert run().succeeded == 2
    sys.exit(code)
"""

_COORDINATOR = """
import sys
from pathlib import Path
from ingest_assets.backends import ProcessBackend
from ingest_assets.core.items import ItemContext, Plan, Result, WorkItem
from ingest_assets.settings.execution import StageOptions
from ingest_assets.runner import Manifest, RunSpec, run_stage
from ingest_tests.runner.workers import announced

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    names = ("sleep-0", "stuck-1", "ok-2")
    items = [WorkItem(name, "f", output_paths=(str(folder / name),)) for name in names]
    manifest = Manifest(folder / "manifest.jsonl")
    backend = ProcessBackend(2)
    run_stage(RunSpec(Plan("stage", items), announced, StageOptions(), backend=backend, manifest=manifest))
"""


def _start_coordinator(folder: Path) -> subprocess.Popen[bytes]:
    script = folder / "coordinator.py"
    script.write_text(_COORDINATOR, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, script, folder], env=_env(), stderr=subprocess.PIPE, start_new_session=True
    )


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def _wait_for_workers(folder: Path, count: int) -> list[int]:
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up:
        pids = [int(text) for path in folder.glob("*.started") if (text := path.read_text())]
        if len(pids) == count:
            return pids
        time.sleep(0.05)
    raise AssertionError("the workers did not start")


def _pids(backend: ProcessBackend, items: int, item_id: str = "pid-1") -> list[int]:
    try:
        ids = [backend.submit(job(item_id)) for _ in range(items)]
        return [backend.get_result(job_id, 30).counts["pid"] for job_id in ids]
    finally:
        backend.close(0)


def _children() -> list[psutil.Process]:
    return [p for p in psutil.Process().children(recursive=True) if p.is_running() and is_running(p.pid)]
