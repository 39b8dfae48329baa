"""Runs whose process is gone: a power cut must not leave a run 'started' and its pool slot taken for ever."""

import os
import socket
from pathlib import Path

import dagster as dg
import psutil

PROCESS_TAG = "ingest/process"
_OPEN = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def claim_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Record which process works on a run, so that its death can be seen from outside."""
    instance.add_run_tags(run_id, {PROCESS_TAG: _identity(os.getpid())})


def settle_orphans(instance: dg.DagsterInstance) -> list[str]:
    """Mark runs of dead processes of this machine as failed, free their pool slots, and give their ids.

    A run that never claimed a process, or belongs to another machine, is left to Dagster's own monitoring.
    """
    settled = []
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=_OPEN)):
        owner = run.tags.get(PROCESS_TAG)
        if owner is None or not _is_dead(owner):
            continue
        instance.report_run_failed(
            run, "The process of this run ended without a word (killed, or a power cut)."
        )
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        settled.append(run.run_id)
    return settled


def _identity(pid: int) -> str:
    """Host, boot, pid and start time: a pid alone may be somebody else's tomorrow."""
    return "/".join((socket.gethostname(), _boot_id(), str(pid), f"{psutil.Process(pid).create_time():.2f}"))


def _is_dead(owner: str) -> bool:
    host, boot, pid, _started = owner.split("/")
    if host != socket.gethostname():
        return False
    if boot != _boot_id():
        return True
    try:
        return _identity(int(pid)) != owner or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _boot_id() -> str:
    file = Path("/proc/sys/kernel/random/boot_id")
    return file.read_text().strip() if file.is_file() else str(int(psutil.boot_time()))
