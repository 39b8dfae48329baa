"""Runs whose process died are failed; living runs are not touched."""

import os
import signal
import subprocess
import sys
import time

import dagster as dg
import pytest

from ingest_assets.app.acquire import expire_dead_leases, worker_name
from ingest_assets.app.home import Home
from ingest_assets.defs.orphans import fail_orphaned_runs
from ingest_assets.intake.queue.artifacts import NewArtifact

# A run that holds a pool slot, says that it began, and sleeps.
RUNNER = """
import sys, time
import dagster as dg
@dg.op(pool="doctags")
def sleeper(context):
    context.instance.add_run_tags(context.run.run_id, {"began": "yes"})
    time.sleep(300)

@dg.job
def sleeping():
    sleeper()

if __name__ == "__main__":
    with dg.DagsterInstance.get() as instance:
        sleeping.execute_in_process(instance=instance)
"""


def _launch() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", RUNNER], env=dict(os.environ), stderr=subprocess.DEVNULL)


def _start(instance: dg.DagsterInstance) -> "subprocess.Popen[bytes]":
    process = _launch()
    deadline = time.monotonic() + 60
    while not any("began" in run.tags for run in instance.get_runs()):
        assert time.monotonic() < deadline, "the run did not start"
        time.sleep(0.2)
    return process


def _status(instance: dg.DagsterInstance) -> dg.DagsterRunStatus:
    (run,) = instance.get_runs()
    return run.status


def test_a_killed_run_is_marked_as_failed_and_its_pool_slot_is_free(home: Home, instance: dg.DagsterInstance):
    """After a power cut, the pool would otherwise be blocked."""
    instance.event_log_storage.set_concurrency_slots("doctags", 1)
    process = _start(instance)
    try:
        alive = fail_orphaned_runs(instance)
        status_alive = _status(instance)
        held = instance.event_log_storage.get_concurrency_info("doctags").claimed_slots
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()

    settled = fail_orphaned_runs(instance)

    assert (alive, status_alive) == ([], dg.DagsterRunStatus.STARTED)
    assert len(held) == 1
    assert len(settled) == 1
    assert _status(instance) == dg.DagsterRunStatus.FAILURE
    assert instance.event_log_storage.get_concurrency_info("doctags").claimed_slots == []


@pytest.mark.chaos
def test_a_slot_is_freed_even_if_the_first_clean_up_was_killed(home: Home, instance: dg.DagsterInstance):
    """The run is already failed by then, so the clean-up must look at ended runs too."""
    instance.event_log_storage.set_concurrency_slots("doctags", 1)
    process = _start(instance)
    process.kill()
    process.wait()
    (run,) = instance.get_runs()
    instance.report_run_failed(run, "settled, and no further")
    held = instance.event_log_storage.get_concurrency_info("doctags").claimed_slots

    assert fail_orphaned_runs(instance) == []

    assert len(held) == 1
    assert instance.event_log_storage.get_concurrency_info("doctags").claimed_slots == []


@pytest.mark.chaos
def test_a_run_that_waits_for_its_pool_is_failed_too(home: Home, instance: dg.DagsterInstance):
    """Most runs of a backfill wait; after a power cut they would wait without end."""
    instance.event_log_storage.set_concurrency_slots("doctags", 0)
    process = _launch()
    deadline = time.monotonic() + 60
    while not (instance.get_runs() and _status(instance) == dg.DagsterRunStatus.STARTED):
        assert time.monotonic() < deadline, "the run did not start"
        time.sleep(0.2)
    time.sleep(1)
    alive = fail_orphaned_runs(instance)
    process.kill()
    process.wait()

    assert alive == []
    assert len(fail_orphaned_runs(instance)) == 1


def test_another_process_with_the_same_pid_is_not_the_run(home: Home):
    """Pids restart after a reboot."""
    from ingest_assets.defs.orphans import _is_alive

    now = time.time()

    assert _is_alive(os.getpid(), now)
    assert not _is_alive(os.getpid(), now - 1_000_000)


LEASER = """
import sys, time
from pathlib import Path
from ingest_assets.app.home import open_home
from ingest_assets.app.acquire import worker_name
home = open_home(Path(sys.argv[1]))
home.queue.lease(worker_name(), 1, time.time())
sys.stdout.write("leased\\n")
sys.stdout.flush()
time.sleep(300)
"""


def test_leases_of_a_killed_process_end_at_once(home: Home):
    """Not only after ten minutes; leases of living processes are kept, on any machine."""
    home.queue.enqueue([NewArtifact(artifact_id=i, path=f"/files/{i}") for i in "abc"], time.time())
    home.queue.lease("another-machine 4026531836 1 1.00", 1, time.time())
    home.queue.lease(worker_name(), 1, time.time())
    process = subprocess.Popen(
        [sys.executable, "-c", LEASER, str(home.layout.home)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "leased\n"
    assert expire_dead_leases(home) == 0

    process.kill()
    process.wait()

    assert expire_dead_leases(home) == 1
    (lease,) = home.queue.lease("next", 9, time.time())
    assert (lease.artifact.artifact_id, lease.artifact.attempts) == ("c", 2)
