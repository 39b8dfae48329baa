"""Runs whose process is gone: after a power cut, no run may stay 'started' and occupy a pool slot."""

import dagster as dg
import psutil

_OPEN = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
# The clock is corrected now and then, and a process's start time depends on it.
_CLOCK_TOLERANCE_S = 60.0


def fail_orphaned_runs(instance: dg.DagsterInstance) -> list[str]:
    """Fail the runs whose process is dead, free the pool slots of ended runs, and return the failed ids.

    With SQLite storage, all runs are on this machine, so their processes can be checked. With other storage
    they can be anywhere, and the run launcher monitors them.
    """
    if not type(instance.run_storage).__name__.startswith("Sqlite"):
        return []
    failed = []
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=_OPEN)):
        started = _process_of(instance, run.run_id)
        if started is None or _is_alive(*started):
            continue
        instance.report_run_failed(run, "The run's process died (killed, or a power cut).")
        failed.append(run.run_id)
    _free_slots_of_ended_runs(instance)
    return failed


def _free_slots_of_ended_runs(instance: dg.DagsterInstance) -> None:
    """Free the slots of all ended runs, including those left by a killed process."""
    storage = instance.event_log_storage
    for run_id in storage.get_concurrency_run_ids():
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            storage.free_concurrency_slots_for_run(run_id)


def _process_of(instance: dg.DagsterInstance, run_id: str) -> tuple[int, float] | None:
    """Return the pid of a run's main process and when Dagster recorded it; None before the run has begun.

    The first engine event with a pid is the run's main process; steps can have their own processes.
    """
    for record in instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records:
        event = record.event_log_entry.dagster_event
        pid = event.engine_event_data.metadata.get("pid") if event else None
        if pid is not None:
            return int(str(pid.value)), record.event_log_entry.timestamp
    return None


def _is_alive(pid: int, recorded_at: float) -> bool:
    """True if the process still runs. A process that started later is another one with the same pid."""
    try:
        process = psutil.Process(pid)
        is_same = process.create_time() <= recorded_at + _CLOCK_TOLERANCE_S
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
