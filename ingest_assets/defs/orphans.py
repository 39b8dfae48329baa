"""Runs whose process is gone: a power cut must not leave a run 'started' and its pool slot taken for ever."""

import socket
from pathlib import Path

import dagster as dg
import psutil

MACHINE_TAG = "ingest/machine"
_OPEN = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def claim_run(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Record on which machine, since which boot, a run works, so that its death can be seen from there."""
    if MACHINE_TAG not in run.tags:
        instance.add_run_tags(run.run_id, {MACHINE_TAG: _machine()})


def settle_orphans(instance: dg.DagsterInstance) -> list[str]:
    """Mark runs of dead processes of this machine as failed, free their pool slots, and give their ids.

    A run that has not come to a stage yet, or belongs to another machine, is left to Dagster's monitoring.
    """
    settled = []
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=_OPEN)):
        if not _is_dead(instance, run):
            continue
        instance.report_run_failed(run, "The run's process ended without a word (killed, or a power cut).")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        settled.append(run.run_id)
    return settled


def _is_dead(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    claimed = run.tags.get(MACHINE_TAG)
    if claimed is None or claimed.split("/")[0] != socket.gethostname():
        return False
    if claimed != _machine():
        return True  # the machine was started anew since
    started = _process_of(instance, run.run_id)
    return started is not None and not _is_alive(*started)


def _process_of(instance: dg.DagsterInstance, run_id: str) -> tuple[int, float] | None:
    """The pid of the process that leads a run, and when Dagster noted it.

    The first engine event with a pid is the run's own process; steps may have processes of their own.
    """
    for record in instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records:
        event = record.event_log_entry.dagster_event
        pid = event.engine_event_data.metadata.get("pid") if event else None
        if pid is not None:
            return int(str(pid.value)), record.event_log_entry.timestamp
    return None


def _is_alive(pid: int, noted_at: float) -> bool:
    """True when that process still runs; one that began after the note has only the same number."""
    try:
        process = psutil.Process(pid)
        return process.create_time() <= noted_at and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    started = boot.read_text()[:8] if boot.is_file() else str(int(psutil.boot_time()))
    return f"{socket.gethostname()}/{started}"
