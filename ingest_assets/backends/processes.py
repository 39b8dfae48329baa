"""Items on warm worker processes that can be killed: for native code that hangs, leaks or crashes."""

import atexit
import contextlib
import logging
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from typing import Any, Literal

from ingest_assets.backends.worker_process import (
    START_LIMIT_S,
    Job,
    Slot,
    cancelled,
    died,
    outgrew,
    timed_out,
)
from ingest_assets.core.errors import ContractBroken, ItemError, SubmitFailed, WorkerDied
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.ports import Call

# The pump: the one thread that owns all worker processes of a backend.
#
# One pipe per process and no lock between processes, so a process that dies, however and whenever, costs the
# item it held and nothing else. The pump hands out calls, reads answers, and kills at the time limit with
# SIGKILL, at once and together with whatever the item started. (pebble's pool was measured and left: an item
# that calls `os._exit(0)` never ends there, a dead idle worker breaks the whole pool, and stuck items are
# killed one after the other, 3 s late each.)

LEAVE_LIMIT_S = 2.0
MEBIBYTE = 1024 * 1024
LOOK_AT_MEMORY_S = 0.1  # an item that allocates a gigabyte a second is stopped 100 MiB past its limit
_UNREADABLE = (pickle.PickleError, ImportError, AttributeError, TypeError, ValueError, LookupError, EOFError)
_log = logging.getLogger(__name__)


class Pump:
    """What has no underscore may be called from any thread; everything else belongs to `run`."""

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
        self._wanting_fresh: deque[Job] = deque()
        self._slots: list[Slot] = []
        self._kill_at: float | None = None
        self._is_starting_a_slot = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)

    def add(self, job: Job) -> None:
        """Queue a call."""
        self._waiting.append(job)
        self._wake()

    def stop(self, grace_s: float) -> None:
        """Start nothing more; kill what still runs after the grace time."""
        self._kill_at = time.monotonic() + grace_s
        self._wake()

    def kill_now(self) -> None:
        """No grace: for interrupts and for the end of the interpreter."""
        self.stop(0)
        for slot in list(self._slots):
            slot.signal_kill()

    def is_only_starting(self) -> bool:
        """True while the fork server, which needs seconds to come up, holds the thread and no item runs."""
        return self._is_starting_a_slot and not any(slot.job for slot in self._slots)

    def cancel_waiting(self) -> None:
        """Answer for every call that has not been handed out."""
        for jobs in (self._wanting_fresh, self._waiting):
            while jobs:
                with contextlib.suppress(IndexError):  # another thread was quicker
                    job = jobs.popleft()
                    if not job.future.cancel():
                        job.end(error=cancelled())

    def release(self) -> None:
        """Close the wake-up pipe, once nobody runs or wakes the pump any more."""
        for end in (self._wake_read, self._wake_write):
            os.close(end)
        self._wake_read, self._wake_write = -1, -1

    def run(self) -> None:
        """Serve until stopped; whatever happens, no future stays open."""
        _shield_children()
        try:
            while self._has_more_to_do():
                self._start_and_assign()
                self._listen()
                self._stop_late_items()
                self._stop_outgrown_items()
        finally:
            self._end_all()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # a full pipe wakes it anyway
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
        wanted = len(self._waiting) + len(self._wanting_fresh)
        for _ in range(min(wanted - starting, self._workers - len(self._slots))):
            self._start_slot()

    def _assign(self, slot: Slot) -> None:
        while slot.job is None:
            jobs = self._wanting_fresh if self._wanting_fresh and not slot.served else self._waiting
            if not jobs:
                return
            job = jobs.popleft()
            if not job.future.running() and not job.future.set_running_or_notify_cancel():
                continue
            if not slot.give(job):  # it died while idle: the item has not started, the next process takes it
                jobs.appendleft(job)
                self._drop(slot)
                return

    def _put_back(self, job: Job) -> None:
        (self._wanting_fresh if job.wants_fresh else self._waiting).appendleft(job)

    def _start_slot(self) -> None:
        self._is_starting_a_slot = True
        try:
            self._slots.append(self._new_slot())
        except (OSError, EOFError) as error:
            self._fail_oldest(WorkerDied(f"no worker process could be started: {error}"))
        finally:
            self._is_starting_a_slot = False

    def _new_slot(self) -> Slot:
        try:
            return Slot(self._context, self._preload)
        except (OSError, EOFError) as error:
            if self._context.get_start_method() == "spawn":
                raise
            _log.warning("The fork server is not usable here (%s); worker processes are spawned.", error)
            self._context = multiprocessing.get_context("spawn")
            return Slot(self._context, self._preload)

    def _fail_oldest(self, error: ItemError) -> None:
        if jobs := self._wanting_fresh or self._waiting:
            job = jobs.popleft()
            if job.future.running() or job.future.set_running_or_notify_cancel():
                job.end(error=error)

    def _listen(self) -> None:
        by_source: dict[Any, Slot] = {}
        for slot in self._slots:
            by_source[slot.connection] = by_source[slot.process.sentinel] = slot
        for source in wait([self._wake_read, *by_source], self._seconds_to_wait()):
            if source == self._wake_read:
                os.read(self._wake_read, 4096)
            elif (heard := by_source[source]) in self._slots:
                self._hear(heard, has_ended=source is not heard.connection)

    def _seconds_to_wait(self) -> float | None:
        moments = [slot.deadline for slot in self._slots if slot.deadline is not None]
        if self._kill_at is not None:
            moments.append(self._kill_at)
        if self._max_mebibytes and any(slot.has_started for slot in self._slots):
            moments.append(time.monotonic() + LOOK_AT_MEMORY_S)
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _hear(self, slot: Slot, *, has_ended: bool) -> None:
        while slot in self._slots and slot.has_message():
            message = slot.take_message()
            if message is None:
                self._bury(slot)
            elif (answer := slot.hear(message)) is not None:
                self._answer(slot, answer)
        if has_ended and slot in self._slots:
            self._bury(slot)

    def _answer(self, slot: Slot, message: bytes) -> None:
        job, slot.job, slot.deadline, slot.has_started = slot.job, None, None, False
        slot.served += 1
        if job is not None:
            try:
                job.end(pickle.loads(message))
            except _UNREADABLE as error:
                job.end(error=ContractBroken(f"the answer does not unpickle: {error!r}"))

    def _bury(self, slot: Slot) -> None:
        """The process ended, or closed the pipe under us: its item fails, the others do not notice."""
        if slot.has_exited(within_s=1.0):
            slot.kill_group()
        error = died(slot.kill(), while_starting=not slot.is_ready)
        self._slots.remove(slot)
        self._account_for(slot, error)

    def _account_for(self, slot: Slot, error: ItemError) -> None:
        """An item that had not started goes to the next process; a process that never got ready costs one."""
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
            if slot.has_message():  # it answered in time; we are late
                continue
            self._drop(slot)
            if slot.job is not None and slot.has_started:
                self._account_for(slot, timed_out(slot.job.timeout_s))
            else:
                self._account_for(slot, WorkerDied(f"a process was not ready within {START_LIMIT_S:g} s"))

    def _stop_outgrown_items(self) -> None:
        """An item is killed for what it needs itself, not for what items before it left in the process."""
        limit = self._max_mebibytes * MEBIBYTE
        for slot in [slot for slot in self._slots if limit and slot.has_started]:
            job = slot.job
            if job is None or slot.resident_bytes() <= limit or slot.has_message():
                continue
            self._drop(slot)
            if slot.served:
                job.wants_fresh = True
                self._put_back(job)
            else:
                job.end(error=outgrew(self._max_mebibytes))

    def _end_all(self) -> None:
        for slot in self._slots:
            if slot.job is not None or not slot.is_ready:  # a starting process does not hear us hang up
                slot.signal_kill()
            slot.hang_up()
        leave_by = time.monotonic() + LEAVE_LIMIT_S
        for slot in self._slots:
            slot.has_exited(within_s=max(0.0, leave_by - time.monotonic()))
            slot.kill()
            if slot.job is not None:
                slot.job.end(error=cancelled())
        self.cancel_waiting()


def _shield_children() -> None:
    """A signal to the whole group is for the coordinator alone.

    The fork server, without which no worker lives, and workers that are still starting inherit what this
    thread blocks. multiprocessing unblocks both when it starts its resource tracker: that comes first.
    """
    resource_tracker.ensure_running()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})


StartMethod = Literal["forkserver", "spawn"]

CLOSE_LIMIT_S = 10.0
_LOOK_AGAIN_S = 0.05
# Imported by the fork server itself, so that a worker is ready some milliseconds after its fork.
_OWN_MODULES = (
    "ingest_assets.backends.fork_server",
    "ingest_assets.backends.worker_process",
    "ingest_assets.core.ports",
)


class ProcessBackend:
    """At most `workers` processes, started when work arrives and kept warm between items.

    `preload` names modules that are imported once in the fork server (when it is not running yet) and
    otherwise in each worker before its first item. A process above `max_mebibytes` of resident memory is
    killed; its item fails when it was the first one there, and else has another try in a fresh process; 0 =
    no limit. Workers ignore SIGINT (the coordinator decides), die on SIGTERM, print to standard error, and do
    not outlive the coordinator, even when that is killed.
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
        if start_method not in multiprocessing.get_all_start_methods():
            start_method = "spawn"
        context = multiprocessing.get_context(start_method)
        if start_method == "forkserver":  # without effect when the server is already running
            context.set_forkserver_preload([*_OWN_MODULES, *preload])
        self.workers = max(1, workers)
        self._owner_pid = os.getpid()
        self._new_pump = lambda: Pump(context, self.workers, tuple(preload), max_mebibytes)
        self._pump: Pump | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def broken(self) -> str | None:
        """The thread that owns the processes ended by itself."""
        is_broken = self._thread is not None and not self._thread.is_alive() and not self._closed
        return "stopped because the backend broke; its log says why" if is_broken else None

    def submit(self, call: Call, item: WorkItem, context: ItemContext, timeout_s: float) -> Future[Any]:
        """Start the call as soon as a process is free. The call and the item must pickle."""
        return self.submit_pickled(pickle.dumps((call, item, context)), timeout_s)

    def submit_pickled(self, blob: bytes, timeout_s: float) -> Future[Any]:
        """The same for a call that was pickled elsewhere."""
        job = Job(blob, timeout_s)
        if self._closed:
            raise SubmitFailed("the backend is closed")
        if self._pump is None or self._thread is None:
            self._pump = self._new_pump()
            self._thread = threading.Thread(target=self._pump.run, name="ingest-pump", daemon=True)
            atexit.register(self._kill_now)  # runs before multiprocessing joins its children
            self._thread.start()
        if not self._thread.is_alive():
            raise SubmitFailed("the backend broke; its log says why")
        self._pump.add(job)
        return job.future

    def close(self, grace_s: float) -> None:
        """Let running items finish for `grace_s`, then kill. Every future is answered on return."""
        self._closed = True
        if self._pump is None or self._thread is None:
            return
        try:
            self._pump.stop(grace_s)
            _join(self._thread, self._pump, grace_s + CLOSE_LIMIT_S)
        finally:
            if self._thread.is_alive():  # interrupted, stuck, or held up by the fork server: no more grace
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
    """Wait for the pump's end, which it will find by itself when it has nothing but a start on its hands."""
    deadline = time.monotonic() + seconds
    while thread.is_alive() and not pump.is_only_starting() and time.monotonic() < deadline:
        thread.join(_LOOK_AGAIN_S)
