"""One worker process: its loop, its slot in the pool, and the errors of a process that ends early."""

import contextlib
import fcntl
import gc
import importlib
import os
import pickle
import select
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

import psutil

from ingest_assets.core.errors import (
    ContractBroken,
    ItemCancelled,
    ItemError,
    ItemTimeout,
    MemoryExceeded,
    WorkerDied,
    caught,
    item_error,
)
from ingest_assets.core.ports import Work

# The loop of a worker process: set up, report ready, run jobs until the coordinator is gone.
#
# Imports are few on purpose: stages import their libraries themselves, or `preload` names them.

READY = b"ready"
STARTED = b"started"


def serve(
    connection: Connection, lifeline: Connection, preload: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Run jobs one after the other; return when the coordinator closes the pipe."""
    gc.freeze()  # objects from the fork are never freed; checking them would only copy their pages
    gc.enable()
    _set_up_process()
    # Use the coordinator's current variables: the fork server can have older ones.
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
    _end_with_coordinator(lifeline.fileno())
    for module in preload:
        with contextlib.suppress(ImportError, OSError):  # an item that needs the module reports the error
            importlib.import_module(module)
    own_pid = os.getpid()
    with contextlib.suppress(EOFError, OSError):  # the coordinator is gone, or the item closed our files
        connection.send_bytes(READY)
        while True:
            blob = connection.recv_bytes()
            connection.send_bytes(STARTED)
            result = _run_pickled(blob)
            if os.getpid() != own_pid:  # the item forked, and this is the child process
                os._exit(0)
            connection.send_bytes(result)


def _run_pickled(blob: bytes) -> bytes:
    """Run pickled work and return its value and its error as a pickled pair."""
    result, error = caught(lambda: pickle.dumps(run_work(lambda: pickle.loads(blob)())))
    if result is None:
        result = pickle.dumps((None, ContractBroken(f"the result cannot be pickled: {error}")))
    return result


def run_work(
    work: Work, kinds: tuple[type[BaseException], ...] = (BaseException,)
) -> tuple[Any, ItemError | None]:
    """Return the work's value, or its exception as an `ItemError`.

    Worker processes catch every exception, since they ignore SIGINT.
    """
    value, error = caught(work, kinds)
    return value, None if error is None else item_error(error)


def _set_up_process() -> None:
    """Ignore Ctrl-C, which is for the coordinator, and print to standard error only."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # a group, so that processes that an item starts are killed with it
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    sys.stdout = sys.stderr


def _end_with_coordinator(lifeline: int) -> None:
    """Kill this process when the coordinator ends, which closes the other end of the lifeline.

    On Linux the kernel kills this process and its children, even while native code holds the GIL. On other
    systems, or if that fails, a thread does it.
    """
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    threading.Thread(target=_watch, args=(lifeline,), name="ingest-lifeline", daemon=True).start()


def _watch(lifeline: int) -> None:
    poll = select.poll()
    poll.register(lifeline, 0)  # report only a hang-up
    poll.poll()
    with contextlib.suppress(OSError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


START_LIMIT_S = 300.0  # the preload reads gigabytes with torch, perhaps from a slow disk
KILL_LIMIT_S = 2.0


@dataclass(eq=False, slots=True)
class Job:
    """Submitted work, already pickled."""

    blob: bytes
    timeout_s: float
    needs_new_process: bool = False  # one that has not run any item
    future: Future[Any] = field(default_factory=Future)

    def end(self, value: Any = None, error: BaseException | None = None) -> None:
        """Set the result, unless there is one."""
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(value)


class Slot:
    """A process that is starting, idle or busy. When it ends, the slot is discarded and not reused."""

    def __init__(self, context: BaseContext, preload: Sequence[str]) -> None:
        self.connection, theirs = context.Pipe()
        their_lifeline, self._lifeline = context.Pipe(duplex=False)
        self.process = context.Process(  # type: ignore[attr-defined]
            target=serve,
            args=(theirs, their_lifeline, tuple(preload), dict(os.environ)),
            name="ingest-worker",
        )
        try:
            self.process.start()
        finally:
            theirs.close()
            their_lifeline.close()
        self.pid: int = self.process.pid
        self._usage: psutil.Process | None = None
        self.is_ready = False
        self.job: Job | None = None
        self.has_started = False
        self.served = 0
        self.deadline: float | None = time.monotonic() + START_LIMIT_S

    def send(self, job: Job) -> bool:
        """Send a job to the process; False if the process is gone."""
        try:
            self.connection.send_bytes(job.blob)
        except OSError:
            return False
        self.job, self.has_started = job, False
        self.deadline = time.monotonic() + START_LIMIT_S
        return True

    def result_from(self, message: bytes) -> bytes | None:
        """Update the state: ready, or started (the time limit counts from here). Return a result's bytes."""
        if self.job is None:
            self.is_ready, self.deadline = True, None
        elif not self.has_started:
            self.has_started = True
            self.deadline = time.monotonic() + self.job.timeout_s if self.job.timeout_s > 0 else None
        else:
            return message
        return None

    def take_message(self) -> bytes | None:
        """Return the next message; None if the pipe is closed."""
        try:
            return self.connection.recv_bytes()
        except (EOFError, OSError):
            return None

    def has_message(self) -> bool:
        """True if a message, or the end of the pipe, can be read without waiting."""
        try:
            return self.connection.poll()
        except OSError:
            return False

    def has_exited(self, within_s: float) -> bool:
        """Wait for the process to end by itself; True if it has."""
        self.process.join(within_s)
        return self.process.exitcode is not None

    def resident_bytes(self) -> int:
        """Return the current memory of the process; 0 if it is gone."""
        try:
            self._usage = self._usage or psutil.Process(self.pid)
            return int(self._usage.memory_info().rss)
        except (psutil.Error, OSError):
            return 0

    def signal_kill(self) -> None:
        """Send SIGKILL to the process and its children."""
        if self.process.exitcode is not None:
            return
        self.kill_group()
        with contextlib.suppress(OSError):  # a starting process has no group yet
            os.kill(self.pid, signal.SIGKILL)

    def kill_group(self) -> None:
        """Send SIGKILL to children that a process left running."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    def kill(self) -> int | None:
        """Kill the process; return its exit code if it ends in time."""
        self.signal_kill()
        self.process.join(KILL_LIMIT_S)
        self.close_pipe()
        self._lifeline.close()
        code: int | None = self.process.exitcode
        return code

    def close_pipe(self) -> None:
        """Close our end of the pipe; an idle worker then ends by itself."""
        self.connection.close()


# Errors of attempts that end without a value. Their messages are the same on every backend and in every run.


def timed_out(timeout_s: float) -> ItemTimeout:
    """Return the error of an item that was stopped, or abandoned, at its time limit."""
    return ItemTimeout(f"exceeded its time limit of {timeout_s:g} s", detail={"limit_s": timeout_s})


def memory_exceeded(limit_mebibytes: int) -> MemoryExceeded:
    """Return the error of an item whose process was killed at its memory limit."""
    message = f"exceeded the memory limit of {limit_mebibytes} MiB (execution.max_worker_mebibytes)"
    return MemoryExceeded(message, detail={"limit_mebibytes": limit_mebibytes})


def worker_died(exit_code: int | None, *, while_starting: bool = False) -> WorkerDied:
    """Return the error for a process that ended; a negative exit code is a signal."""
    when = " while starting" if while_starting else ""
    how = f"exit code {'unknown' if exit_code is None else exit_code}"
    if exit_code is not None and exit_code < 0:
        has_name = -exit_code in set(signal.Signals)
        how = f"signal {signal.Signals(-exit_code).name if has_name else -exit_code}"
    return WorkerDied(f"the worker process died{when} ({how})", detail={"exit_code": exit_code})


def cancelled() -> ItemCancelled:
    """Return the error of an item whose backend was closed."""
    return ItemCancelled("the stage ended before the item finished")
