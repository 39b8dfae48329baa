"""Runs whose process died are settled; runs that live are left alone."""

import os
import signal
import subprocess
import sys
import time

import dagster as dg

from ingest_assets.defs.home import Home
from ingest_assets.defs.orphans import settle_orphans

# A run that claims itself as a stage does and holds a pool slot, then sleeps.
RUNNER = """
import sys, time
import dagster as dg
from ingest_assets.defs.orphans import claim_run

@dg.op(pool="doctags")
def sleeper(context):
    claim_run(context.instance, context.run)
    time.sleep(300)

@dg.job
def sleeping():
    sleeper()

if __name__ == "__main__":
    with dg.DagsterInstance.get() as instance:
        sleeping.execute_in_process(instance=instance)
"""


def _start(instance: dg.DagsterInstance) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNER], env=dict(os.environ), stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while not any("ingest/machine" in run.tags for run in instance.get_runs()):
        assert time.monotonic() < deadline, "the run did not start"
        time.sleep(0.2)
    return process


def _status(instance: dg.DagsterInstance) -> dg.DagsterRunStatus:
    (run,) = instance.get_runs()
    return run.status


def test_a_killed_run_is_marked_as_failed_and_its_pool_slot_is_free(home: Home, instance: dg.DagsterInstance):
    """After a power cut nobody else would do it, and the pool would be stuck for ever."""
    instance.event_log_storage.set_concurrency_slots("doctags", 1)
    process = _start(instance)
    try:
        alive = settle_orphans(instance)
        status_alive = _status(instance)
        held = instance.event_log_storage.get_concurrency_info("doctags").claimed_slots
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()

    settled = settle_orphans(instance)

    assert (alive, status_alive) == ([], dg.DagsterRunStatus.STARTED)
    assert len(held) == 1
    assert len(settled) == 1
    assert _status(instance) == dg.DagsterRunStatus.FAILURE
    assert instance.event_log_storage.get_concurrency_info("doctags").claimed_slots == []


def test_a_run_of_another_machine_is_left_alone(home: Home, instance: dg.DagsterInstance):
    """Its process cannot be seen from here."""
    process = _start(instance)
    process.kill()
    process.wait()
    (run,) = instance.get_runs()
    instance.add_run_tags(run.run_id, {"ingest/machine": "somewhere-else/12345678"})

    assert settle_orphans(instance) == []
    assert _status(instance) == dg.DagsterRunStatus.STARTED


def test_a_run_from_before_the_last_boot_is_dead(home: Home, instance: dg.DagsterInstance):
    """A pid may be somebody else's after a restart."""
    process = _start(instance)
    try:
        (run,) = instance.get_runs()
        host = run.tags["ingest/machine"].split("/")[0]
        instance.add_run_tags(run.run_id, {"ingest/machine": f"{host}/00000000"})

        assert settle_orphans(instance) == [run.run_id]
    finally:
        process.kill()
        process.wait()
