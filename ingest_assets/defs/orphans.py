"""Runs and leases whose process is gone: a power cut must not leave a run 'started', its pool slot taken, or
what it was acquiring out of reach until the lease's end."""

import dagster as dg
import psutil

_OPEN = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
# Clocks are set right now and then, and a process's start is reckoned from the clock.
_CLOCK_TOLERANCE_S = 60.0


def settle_orphans(instance: dg.DagsterInstance) -> list[str]:
    """Mark runs whose process is dead as failed, free the pool slots of all that ended, and give their ids.

    Runs in SQLite belong to this machine, so their processes can be seen. On another storage they may be
    anywhere, and it is for the run launcher there to know.
    """
    if not type(instance.run_storage).__name__.startswith("Sqlite"):
        return []
    settled = []
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=_OPEN)):
        started = _process_of(instance, run.run_id)
        if started is None or _is_alive(*started):
            continue
        instance.report_run_failed(run, "The run's process ended without a word (killed, or a power cut).")
        settled.append(run.run_id)
    _free_slots_of_ended_runs(instance)
    return settled


def _free_slots_of_ended_runs(instance: dg.DagsterInstance) -> None:
    """Also of those that somebody settled, and was killed before this: the pool would be stuck for ever."""
    storage = instance.event_log_storage
    for run_id in storage.get_concurrency_run_ids():
        run = instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            storage.free_concurrency_slots_for_run(run_id)


def _process_of(instance: dg.DagsterInstance, run_id: str) -> tuple[int, float] | None:
    """The pid of the process that leads a run, and when Dagster noted it; None before it has begun.

    The first engine event with a pid is the run's own process; steps may have processes of their own.
    """
    for record in instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records:
        event = record.event_log_entry.dagster_event
        pid = event.engine_event_data.metadata.get("pid") if event else None
        if pid is not None:
            return int(str(pid.value)), record.event_log_entry.timestamp
    return None


def _is_alive(pid: int, noted_at: float) -> bool:
    """True when that process still runs; one that began after the note, or after a restart, is another."""
    try:
        process = psutil.Process(pid)
        is_same = process.create_time() <= noted_at + _CLOCK_TOLERANCE_S
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
