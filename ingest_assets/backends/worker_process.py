"""One worker process: its slot in the pool, the loop it runs and how it ends."""

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

from ingest_assets.core.errors import ItemCancelled, ItemTimeout, MemoryExceeded, WorkerDied

# The life of one worker process: behave, get ready, answer until the coordinator is gone.
#
# It runs in the worker and is light on purpose: what an item needs is imported by the item or by `preload`.

READY = b"ready"
STARTED = b"started"


def serve(
    connection: Connection, lifeline: Connection, preload: Sequence[str], environment: Mapping[str, str]
) -> None:
    """Answer calls one after the other; return when the coordinator closes the pipe."""
    gc.freeze()  # what came with the fork stays for good: looking through it again would only copy its pages
    gc.enable()
    _behave()
    # The coordinator's variables as they are now: the fork server may be older than their last change.
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
    _end_with_coordinator(lifeline.fileno())
    for module in preload:
        with contextlib.suppress(ImportError, OSError):  # the item that needs it will say so itself
            importlib.import_module(module)
    own_pid = os.getpid()
    with contextlib.suppress(EOFError, OSError):  # the coordinator left, or the item closed our files
        connection.send_bytes(READY)
        while True:
            blob = connection.recv_bytes()
            connection.send_bytes(STARTED)
            call, item, context = pickle.loads(blob)
            answer = pickle.dumps(call(item, context))
            if os.getpid() != own_pid:  # the item forked, and this is the copy that came back
                os._exit(0)
            connection.send_bytes(answer)


def _behave() -> None:
    """Leave Ctrl-C to the coordinator and standard output to its owner."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # so that whatever an item starts can be killed with it
    with contextlib.suppress(OSError):
        os.dup2(2, 1)
    sys.stdout = sys.stderr


def _end_with_coordinator(lifeline: int) -> None:
    """Nobody writes into the lifeline; it hangs up when the coordinator ends, however that ends.

    On Linux the kernel then kills this process and what it started, even while native code keeps the
    interpreter locked. Elsewhere, and should that fail, a thread does it.
    """
    with contextlib.suppress(OSError, AttributeError):
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    threading.Thread(target=_watch, args=(lifeline,), name="ingest-lifeline", daemon=True).start()


def _watch(lifeline: int) -> None:
    poll = select.poll()
    poll.register(lifeline, 0)  # hang-ups only
    poll.poll()
    with contextlib.suppress(OSError):
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


START_LIMIT_S = 300.0  # what the preload imports, gigabytes with torch, may come from a slow disk
KILL_LIMIT_S = 2.0


@dataclass(eq=False, slots=True)
class Job:
    """One submitted call, already pickled."""

    blob: bytes
    timeout_s: float
    wants_fresh: bool = False  # a process that has served nobody yet
    future: Future[Any] = field(default_factory=Future)

    def end(self, value: Any = None, error: BaseException | None = None) -> None:
        """Answer, unless somebody has."""
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(value)


class Slot:
    """Starting, then idle or busy. A slot whose process ended is thrown away, never mended."""

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

    def give(self, job: Job) -> bool:
        """Hand over a call. False when the process is gone."""
        try:
            self.connection.send_bytes(job.blob)
        except OSError:
            return False
        self.job, self.has_started = job, False
        self.deadline = time.monotonic() + START_LIMIT_S
        return True

    def hear(self, message: bytes) -> bytes | None:
        """Move on: ready, started (the time limit counts from here), or the answer, which is given back."""
        if self.job is None:
            self.is_ready, self.deadline = True, None
        elif not self.has_started:
            self.has_started = True
            self.deadline = time.monotonic() + self.job.timeout_s if self.job.timeout_s > 0 else None
        else:
            return message
        return None

    def take_message(self) -> bytes | None:
        """The next message, or nothing when the process hung up."""
        try:
            return self.connection.recv_bytes()
        except (EOFError, OSError):
            return None

    def has_message(self) -> bool:
        """True when a message or a hang-up can be read without waiting."""
        try:
            return self.connection.poll()
        except OSError:
            return False

    def has_exited(self, within_s: float) -> bool:
        """Wait a little for the process to end by itself."""
        self.process.join(within_s)
        return self.process.exitcode is not None

    def resident_bytes(self) -> int:
        """What the process holds in memory now; 0 when it is gone."""
        try:
            self._usage = self._usage or psutil.Process(self.pid)
            return int(self._usage.memory_info().rss)
        except (psutil.Error, OSError):
            return 0

    def signal_kill(self) -> None:
        """SIGKILL for the process and for everything it started."""
        if self.process.exitcode is not None:
            return
        self.kill_group()
        with contextlib.suppress(OSError):  # a process that is still starting has no group of its own yet
            os.kill(self.pid, signal.SIGKILL)

    def kill_group(self) -> None:
        """SIGKILL for what a process that just ended may have left running."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    def kill(self) -> int | None:
        """End the process now; its exit code, when the kernel gives it in time."""
        self.signal_kill()
        self.process.join(KILL_LIMIT_S)
        self.hang_up()
        self._lifeline.close()
        code: int | None = self.process.exitcode
        return code

    def hang_up(self) -> None:
        """Close our end: an idle worker leaves by itself."""
        self.connection.close()


# How an attempt can end without a value, in words that are the same on every backend and every run.


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
    how = f"exit code {'unknown' if exit_code is None else exit_code}"
    if exit_code is not None and exit_code < 0:
        has_name = -exit_code in set(signal.Signals)
        how = f"signal {signal.Signals(-exit_code).name if has_name else -exit_code}"
    return WorkerDied(f"the worker process died{when} ({how})", detail={"exit_code": exit_code})


def cancelled() -> ItemCancelled:
    """The backend closed first."""
    return ItemCancelled("the stage ended before the item could")
