"""A pool of worker processes that can be killed, for native code that hangs, leaks memory or crashes."""

import atexit
import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from typing import Any, Literal

from ingest_assets.backends.jobs import JobBackend, pickled
from ingest_assets.backends.worker_process import (
    START_LIMIT_S,
    Job,
    Slot,
    cancelled,
    memory_exceeded,
    timed_out,
    worker_died,
)
from ingest_assets.core.errors import ContractBroken, ItemError, SubmitFailed, WorkerDied
from ingest_assets.core.ports import Work

# The pump: the thread that owns all worker processes of a backend.
#
# Each process has its own pipe and processes share no locks, so when one dies, only its item is lost. The
# pump sends jobs, reads results, and kills with SIGKILL at the time limit, including child processes of the
# item. (pebble's pool was measured and rejected: an item that calls `os._exit(0)` never ends there, a dead
# idle worker breaks the whole pool, and hanging items are killed one after the other, each 3 s late.)

EXIT_LIMIT_S = 2.0
MEBIBYTE = 1024 * 1024
MEMORY_CHECK_INTERVAL_S = 0.1  # an item that allocates 1 GiB per second is stopped 100 MiB above its limit
_UNREADABLE = (pickle.PickleError, ImportError, AttributeError, TypeError, ValueError, LookupError, EOFError)
_POOL_FAILED = "the process pool failed; see the traceback on standard error"
_log = logging.getLogger(__name__)


class Pump:
    """Owns the processes. Other threads can call the methods without an underscore, and only those."""

    def __init__(
        self,
        context: BaseContext,
        workers: int,
        preload: tuple[str, ...],
        max_mebibytes: int = 0,
    ) -> None:
        self._context = context
        self._workers = workers
        self._preload = preload
        self._max_mebibytes = max_mebibytes
        self._waiting: deque[Job] = deque()
        self._need_new_process: deque[Job] = deque()
        self._slots: list[Slot] = []
        self._kill_at: float | None = None
        self._is_starting_slot = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)

    def add(self, job: Job) -> None:
        """Queue a job."""
        self._waiting.append(job)
        self._wake()

    def stop(self, grace_s: float) -> None:
        """Start no more jobs; kill those that still run after the grace time."""
        self._kill_at = time.monotonic() + grace_s
        self._wake()

    def kill_now(self) -> None:
        """Kill running jobs at once, after an interrupt and when the interpreter exits."""
        self.stop(0)
        for slot in list(self._slots):
            slot.signal_kill()

    def is_only_starting(self) -> bool:
        """True while the thread waits for the fork server, which takes seconds to start, and no item runs."""
        return self._is_starting_slot and not any(slot.job for slot in self._slots)

    def cancel_waiting(self) -> None:
        """Cancel all jobs that have not been sent to a process."""
        for jobs in (self._need_new_process, self._waiting):
            while jobs:
                with contextlib.suppress(IndexError):  # another thread took the last one
                    job = jobs.popleft()
                    if not job.future.cancel():
                        job.end(error=cancelled())

    def release(self) -> None:
        """Close the wake-up pipe, after the thread has ended."""
        for end in (self._wake_read, self._wake_write):
            os.close(end)
        self._wake_read, self._wake_write = -1, -1

    def run(self) -> None:
        """Run until stopped. Every future has a result afterwards, even after an error."""
        _block_signals()
        try:
            while self._has_more_to_do():
                self._start_and_assign()
                self._read_messages()
                self._stop_late_items()
                self._stop_oversized_items()
        finally:
            self._end_all()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # a full pipe wakes the thread too
            os.write(self._wake_write, b"!")

    def _has_more_to_do(self) -> bool:
        if self._kill_at is None:
            return True
        self.cancel_waiting()
        return not self._is_killing() and any(slot.job for slot in self._slots)

    def _is_killing(self) -> bool:
        return self._kill_at is not None and time.monotonic() >= self._kill_at

    def _start_and_assign(self) -> None:
        for slot in [slot for slot in self._slots if slot.is_ready and slot.job is None]:
            self._assign(slot)
        starting = sum(not slot.is_ready for slot in self._slots)
        jobs = len(self._waiting) + len(self._need_new_process)
        for _ in range(min(jobs - starting, self._workers - len(self._slots))):
            self._start_slot()

    def _assign(self, slot: Slot) -> None:
        while slot.job is None:
            jobs = self._need_new_process if self._need_new_process and not slot.served else self._waiting
            if not jobs:
                return
            job = jobs.popleft()
            if not job.future.running() and not job.future.set_running_or_notify_cancel():
                continue
            if not slot.send(job):  # the process died while idle: another process takes the job
                jobs.appendleft(job)
                self._drop(slot)
                return

    def _put_back(self, job: Job) -> None:
        (self._need_new_process if job.needs_new_process else self._waiting).appendleft(job)

    def _start_slot(self) -> None:
        self._is_starting_slot = True
        try:
            self._slots.append(self._new_slot())
        except (OSError, EOFError) as error:
            self._fail_oldest(WorkerDied(f"worker process could not be started: {error}"))
        finally:
            self._is_starting_slot = False

    def _new_slot(self) -> Slot:
        try:
            return Slot(self._context, self._preload)
        except (OSError, EOFError) as error:
            if self._context.get_start_method() == "spawn":
                raise
            _log.warning("The fork server is not available (%s); worker processes are spawned.", error)
            self._context = multiprocessing.get_context("spawn")
            return Slot(self._context, self._preload)

    def _fail_oldest(self, error: ItemError) -> None:
        if jobs := self._need_new_process or self._waiting:
            job = jobs.popleft()
            if job.future.running() or job.future.set_running_or_notify_cancel():
                job.end(error=error)

    def _read_messages(self) -> None:
        by_source: dict[Any, Slot] = {}
        for slot in self._slots:
            by_source[slot.connection] = by_source[slot.process.sentinel] = slot
        for source in wait([self._wake_read, *by_source], self._seconds_to_wait()):
            if source == self._wake_read:
                os.read(self._wake_read, 4096)
            elif (slot := by_source[source]) in self._slots:
                self._receive(slot, has_ended=source is not slot.connection)

    def _seconds_to_wait(self) -> float | None:
        times = [slot.deadline for slot in self._slots if slot.deadline is not None]
        if self._kill_at is not None:
            times.append(self._kill_at)
        if self._max_mebibytes and any(slot.has_started for slot in self._slots):
            times.append(time.monotonic() + MEMORY_CHECK_INTERVAL_S)
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _receive(self, slot: Slot, *, has_ended: bool) -> None:
        while slot in self._slots and slot.has_message():
            message = slot.take_message()
            if message is None:
                self._remove_dead(slot)
            elif (result := slot.result_from(message)) is not None:
                self._end_job(slot, result)
        if has_ended and slot in self._slots:
            self._remove_dead(slot)

    def _end_job(self, slot: Slot, message: bytes) -> None:
        job, slot.job, slot.deadline, slot.has_started = slot.job, None, None, False
        slot.served += 1
        if job is not None:
            try:
                job.end(*pickle.loads(message))
            except _UNREADABLE as error:
                job.end(error=ContractBroken(f"the result cannot be unpickled: {error!r}"))

    def _remove_dead(self, slot: Slot) -> None:
        """Remove a process that ended or closed its pipe; only its item fails."""
        if slot.has_exited(within_s=1.0):
            slot.kill_group()
        error = worker_died(slot.kill(), while_starting=not slot.is_ready)
        self._slots.remove(slot)
        self._account_for(slot, error)

    def _account_for(self, slot: Slot, error: ItemError) -> None:
        """Fail the slot's item, or requeue it if it had not started. A failed start fails the oldest job."""
        if slot.job is not None and slot.has_started:
            slot.job.end(error=cancelled() if self._is_killing() else error)
        elif slot.job is not None:
            self._put_back(slot.job)
        elif not slot.is_ready:
            self._fail_oldest(error)

    def _drop(self, slot: Slot) -> None:
        self._slots.remove(slot)
        slot.kill()

    def _stop_late_items(self) -> None:
        now = time.monotonic()
        for slot in [slot for slot in self._slots if slot.deadline is not None and slot.deadline <= now]:
            if slot.has_message():  # the result arrived in time and is not read yet
                continue
            self._drop(slot)
            if slot.job is not None and slot.has_started:
                self._account_for(slot, timed_out(slot.job.timeout_s))
            else:
                self._account_for(slot, WorkerDied(f"a process was not ready within {START_LIMIT_S:g} s"))

    def _stop_oversized_items(self) -> None:
        """Kill processes above the memory limit. An item fails only if it was the first of its process;
        otherwise earlier items can be the cause, and it is retried in a new process."""
        limit = self._max_mebibytes * MEBIBYTE
        for slot in [slot for slot in self._slots if limit and slot.has_started]:
            job = slot.job
            if job is None or slot.resident_bytes() <= limit or slot.has_message():
                continue
            self._drop(slot)
            if slot.served:
                job.needs_new_process = True
                self._put_back(job)
            else:
                job.end(error=memory_exceeded(self._max_mebibytes))

    def _end_all(self) -> None:
        for slot in self._slots:
            if slot.job is not None or not slot.is_ready:  # a starting process does not read its pipe
                slot.signal_kill()
            slot.close_pipe()
        exit_by = time.monotonic() + EXIT_LIMIT_S
        for slot in self._slots:
            slot.has_exited(within_s=max(0.0, exit_by - time.monotonic()))
            slot.kill()
            if slot.job is not None:
                slot.job.end(error=cancelled())
        self.cancel_waiting()


def _block_signals() -> None:
    """Block SIGINT and SIGTERM in this thread, so that a signal to the group reaches only the coordinator.

    The fork server and starting workers inherit the blocked signals. The resource tracker of multiprocessing
    unblocks them when it starts, so it is started first.
    """
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})


StartMethod = Literal["forkserver", "spawn"]

CLOSE_LIMIT_S = 10.0
_JOIN_INTERVAL_S = 0.05
# Imported by the fork server, so that a worker is ready a few milliseconds after its fork.
_OWN_MODULES = (
    "ingest_assets.backends.fork_server",
    "ingest_assets.backends.worker_process",
    "ingest_assets.core.ports",
)


def _is_imported_by_worker() -> bool:
    """True while a worker process imports the main script under multiprocessing's name for it."""
    imported = sys.modules.get("__mp_main__")
    return imported is not None and imported is not sys.modules.get("__main__")


class ProcessBackend(JobBackend):
    """At most `workers` processes, started when work arrives and reused for later items.

    `preload` names modules that are imported once in the fork server (if it is not running yet), otherwise in
    each worker before its first item. A process above `max_mebibytes` of resident memory (0 = no limit) is
    killed; its item fails if it was the first of that process, and otherwise is retried in a new one. Workers
    ignore SIGINT (the coordinator decides), end on SIGTERM, print to standard error, and end with the
    coordinator, even if that is killed.
    """

    is_inline = False
    abandoned = 0  # a process can always be killed

    def __init__(
        self,
        workers: int,
        preload: Sequence[str] = (),
        start_method: StartMethod = "forkserver",
        max_mebibytes: int = 0,
    ) -> None:
        super().__init__()
        if start_method not in multiprocessing.get_all_start_methods():
            start_method = "spawn"
        context = multiprocessing.get_context(start_method)
        if start_method == "forkserver":  # has no effect if the server is already running
            context.set_forkserver_preload([*_OWN_MODULES, *preload])
        self.workers = max(1, workers)
        self._owner_pid = os.getpid()
        self._new_pump = lambda: Pump(context, self.workers, tuple(preload), max_mebibytes)
        self._pump: Pump | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def broken(self) -> str | None:
        """The reason if the thread that owns the processes has failed."""
        is_broken = self._thread is not None and not self._thread.is_alive() and not self._closed
        return f"stopped because {_POOL_FAILED}" if is_broken else None

    def submit_pickled(self, blob: bytes, timeout_s: float) -> str:
        """Submit work that is already pickled."""
        return self._track(lambda: self._start_pickled(blob, timeout_s))

    def _start(self, work: Work, timeout_s: float) -> Future[Any]:
        return self._start_pickled(pickled(work), timeout_s)

    def _start_pickled(self, blob: bytes, timeout_s: float) -> Future[Any]:
        job = Job(blob, timeout_s)
        if self._closed:
            raise SubmitFailed("the backend is closed")
        if self._pump is None or self._thread is None:
            if _is_imported_by_worker():
                raise SubmitFailed(
                    "worker processes import this script, so what starts them must be below "
                    '`if __name__ == "__main__":`'
                )
            self._pump = self._new_pump()
            self._thread = threading.Thread(target=self._pump.run, name="ingest-pump", daemon=True)
            atexit.register(self._kill_now)  # runs before multiprocessing joins its children
            self._thread.start()
        if not self._thread.is_alive():
            raise SubmitFailed(_POOL_FAILED)
        self._pump.add(job)
        return job.future

    def close(self, grace_s: float = 0.0) -> None:
        """Let running jobs finish for `grace_s`, then kill them. Every job has a result afterwards."""
        self._closed = True
        if self._pump is None or self._thread is None:
            return
        try:
            self._pump.stop(grace_s)
            _join(self._thread, self._pump, grace_s + CLOSE_LIMIT_S)
        finally:
            if self._thread.is_alive():  # interrupted, hanging, or waiting for the fork server
                self._kill_now()
                self._pump.cancel_waiting()
                _join(self._thread, self._pump, CLOSE_LIMIT_S)
            atexit.unregister(self._kill_now)
            if not self._thread.is_alive():
                self._pump.release()
            self._pump = self._thread = None

    def _kill_now(self) -> None:
        if self._pump is not None and os.getpid() == self._owner_pid:  # a fork does not own the processes
            self._pump.kill_now()


def _join(thread: threading.Thread, pump: Pump, seconds: float) -> None:
    """Wait for the thread, unless it is only starting the fork server; then it ends by itself."""
    deadline = time.monotonic() + seconds
    while thread.is_alive() and not pump.is_only_starting() and time.monotonic() < deadline:
        thread.join(_JOIN_INTERVAL_S)
