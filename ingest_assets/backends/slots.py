"""One worker process and the pipe to it, seen from the coordinator."""

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.context import BaseContext
from typing import Any

import psutil

from ingest_assets.backends.process_worker import serve

START_LIMIT_S = 300.0
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

    def leave(self, within_s: float) -> None:
        """Ask an idle process to end, and do not take no for an answer."""
        self.hang_up()
        self.has_exited(within_s)
        self.kill()

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
