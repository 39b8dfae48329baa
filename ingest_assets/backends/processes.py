"""Items on warm worker processes that can be killed: for native code that hangs, leaks or crashes."""

import atexit
import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from multiprocessing.context import BaseContext
from typing import Any, Literal

from ingest_assets.backends.pump import Pump
from ingest_assets.backends.slots import Job
from ingest_assets.model.errors import SubmitFailed
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.ports import Call

StartMethod = Literal["forkserver", "spawn"]

CLOSE_LIMIT_S = 10.0
_LOOK_AGAIN_S = 0.05
_OWN_MODULES = (
    "ingest_assets.backends.without_gc",
    "ingest_assets.backends.process_worker",
    "ingest_assets.model.ports",
)


class ProcessBackend:
    """At most `workers` processes, started when work arrives and kept warm between items.

    `preload` names modules that are imported once in the fork server (when it is not running yet) and
    otherwise in each worker before its first item. `max_items_per_worker` replaces a process after so many
    items; 0 = never. A process above `max_mebibytes` of resident memory is killed; its item fails when it was
    the first one there, and else has another try in a fresh process; 0 = no limit. Workers ignore SIGINT (the
    coordinator decides), die on SIGTERM, print to standard error, and do not outlive the coordinator, even
    when that is killed.
    """

    is_inline = False

    def __init__(
        self,
        workers: int,
        preload: Sequence[str] = (),
        start_method: StartMethod = "forkserver",
        max_items_per_worker: int = 0,
        max_mebibytes: int = 0,
    ) -> None:
        context = _context(start_method, preload)
        self._workers = max(1, workers)
        self._owner_pid = os.getpid()
        self._new_pump = lambda: Pump(
            context, self._workers, tuple(preload), max_items_per_worker, max_mebibytes
        )
        self._pump: Pump | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def workers(self) -> int:
        """How many items run at the same time."""
        return self._workers

    @property
    def abandoned(self) -> int:
        """A process can always be killed."""
        return 0

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
            self._pump, self._thread = self._start()
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

    def _start(self) -> tuple[Pump, threading.Thread]:
        pump = self._new_pump()
        thread = threading.Thread(target=pump.run, name="ingest-pump", daemon=True)
        atexit.register(self._kill_now)  # runs before multiprocessing joins its children
        thread.start()
        return pump, thread

    def _kill_now(self) -> None:
        if self._pump is not None and os.getpid() == self._owner_pid:  # a fork does not own the processes
            self._pump.kill_now()


def _join(thread: threading.Thread, pump: Pump, seconds: float) -> None:
    """Wait for the pump's end, which it will find by itself when it has nothing but a start on its hands."""
    deadline = time.monotonic() + seconds
    while thread.is_alive() and not pump.is_only_starting() and time.monotonic() < deadline:
        thread.join(_LOOK_AGAIN_S)


def _context(start_method: StartMethod, preload: Sequence[str]) -> BaseContext:
    if start_method not in multiprocessing.get_all_start_methods():
        start_method = "spawn"
    context = multiprocessing.get_context(start_method)
    if start_method == "forkserver":  # without effect when the server is already running
        context.set_forkserver_preload([*_OWN_MODULES, *preload])
    return context
