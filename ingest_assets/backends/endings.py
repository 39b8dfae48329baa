"""How an attempt can end without a value, in words that are the same on every backend and every run."""

import signal

from ingest_assets.model.errors import ItemCancelled, ItemTimeout, MemoryExceeded, WorkerDied


def timed_out(timeout_s: float) -> ItemTimeout:
    """The item was stopped, or given up, at its limit."""
    return ItemTimeout(f"ran past its limit of {timeout_s:g} s", detail={"limit_s": timeout_s})


def outgrew(limit_mebibytes: int) -> MemoryExceeded:
    """The item's process was killed because it held more memory than one worker may."""
    message = f"needed more than the {limit_mebibytes} MiB a worker may have (execution.max_worker_mebibytes)"
    return MemoryExceeded(message, detail={"limit_mebibytes": limit_mebibytes})


def died(exit_code: int | None, *, while_starting: bool = False) -> WorkerDied:
    """The worker process ended; a negative exit code is a signal, as in `multiprocessing`."""
    when = " while starting" if while_starting else ""
    message = f"the worker process died{when} ({_exit_words(exit_code)})"
    return WorkerDied(message, detail={"exit_code": exit_code})


def cancelled() -> ItemCancelled:
    """The backend closed first."""
    return ItemCancelled("the stage ended before the item could")


def _exit_words(exit_code: int | None) -> str:
    if exit_code is None:
        return "exit code unknown"
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"signal {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"signal {-exit_code}"
