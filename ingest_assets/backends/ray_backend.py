"""Items on warm actors of a Ray cluster.

One thread owns all actors and waits for events: a call was submitted, an actor is ready, answered or ended.
An actor gets one item at a time and only when it is idle, so nothing queues up on the cluster.
"""

import contextlib
import os
import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from ingest_assets.backends.endings import cancelled
from ingest_assets.backends.ray_actor import Supervisor
from ingest_assets.backends.ray_cluster import import_ray, is_alive
from ingest_assets.backends.slots import START_LIMIT_S, Job
from ingest_assets.model.errors import SubmitFailed, WorkerLost
from ingest_assets.model.identity import code_version
from ingest_assets.model.items import ItemContext, WorkItem
from ingest_assets.model.ports import Call

CLOSE_LIMIT_S = 10.0
MAX_FAILED_STARTS = 5
PROBE_INTERVAL_S = 5.0
GONE_AFTER_S = 25.0
# What an actor may need beyond an item's own limit before it is taken for lost: its worker may be starting.
ANSWER_MARGIN_S = START_LIMIT_S + 30.0
_ENVIRONMENT = ("INGEST_", "HF_", "TRANSFORMERS_", "TOKENIZERS_", "DOCLING_", "OMP_", "OTEL_")


@dataclass(eq=False, slots=True)
class _Slot:
    """One actor: starting, idle or busy. One that ended is thrown away, never mended."""

    actor: Any
    number: int
    place: str = ""
    is_ready: bool = False
    job: Job | None = None
    answer_by: float | None = None


class RayBackend:
    """At most `workers` actors, started when work arrives and kept warm between items.

    The process must be connected to a cluster (`ray_cluster.connect`). A lost actor or node ends its item
    with `WorkerLost`, and another actor takes its place. `say` hears where workers are and what they print.
    """

    is_inline = False

    def __init__(
        self,
        workers: int,
        preload: Sequence[str] = (),
        *,
        num_cpus: float = 1.0,
        num_gpus: float = 0.0,
        max_mebibytes: int = 0,
        say: Callable[[str], None] = lambda line: None,
        start_limit_s: float = START_LIMIT_S,
    ) -> None:
        self._ray = import_ray()
        self._workers = max(1, workers)
        self._preload = tuple(preload)
        self._claims = {"num_cpus": num_cpus, "num_gpus": num_gpus}
        self._max_mebibytes = max_mebibytes
        self._say, self._start_limit_s = say, start_limit_s
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._waiting: deque[Job] = deque()
        self._slots: list[_Slot] = []
        self._started = self._failed_starts = 0
        self._ready_by: float | None = None
        self._alive_at = time.monotonic()
        self._probe_at = self._alive_at + PROBE_INTERVAL_S
        self._kill_at: float | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._broken: str | None = None

    @property
    def workers(self) -> int:
        """How many items run at the same time, once the cluster has placed as many actors."""
        return self._workers

    @property
    def abandoned(self) -> int:
        """An actor's worker can always be killed."""
        return 0

    @property
    def broken(self) -> str | None:
        """Set when the cluster gives no worker, or is gone itself."""
        has_ended = self._thread is not None and not self._thread.is_alive() and not self._closed
        return "stopped because the Ray cluster is gone; the log says more" if has_ended else self._broken

    def submit(self, call: Call, item: WorkItem, context: ItemContext, timeout_s: float) -> Future[Any]:
        """Start the call as soon as an actor is idle. The call and the item must pickle."""
        job = Job(pickle.dumps((call, item, context)), timeout_s)
        if self._closed:
            raise SubmitFailed("the backend is closed")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ingest-ray", daemon=True)
            self._thread.start()
        if not self._thread.is_alive():
            raise SubmitFailed("the backend broke; its log says why")
        self._events.put(partial(self._waiting.append, job))
        return job.future

    def close(self, grace_s: float) -> None:
        """Let running items finish for `grace_s`, then kill. Every future is answered on return."""
        self._closed = True
        if self._thread is None:
            return
        try:
            self._stop(grace_s)
            self._thread.join(grace_s + CLOSE_LIMIT_S)
        finally:
            if self._thread.is_alive():  # interrupted, or stuck: no more grace
                self._stop(0)
                self._thread.join(CLOSE_LIMIT_S)

    def _stop(self, grace_s: float) -> None:
        self._kill_at = time.monotonic() + grace_s
        self._events.put(lambda: None)

    def _run(self) -> None:
        try:
            while self._has_more_to_do():
                self._start_and_assign()
                self._take_events()
                self._look_at_the_clock()
        finally:
            self._end_all()

    def _has_more_to_do(self) -> bool:
        if self._kill_at is None:
            return True
        self._cancel_waiting()
        return time.monotonic() < self._kill_at and any(slot.job for slot in self._slots)

    def _start_and_assign(self) -> None:
        for slot in self._slots:
            if slot.is_ready and slot.job is None:
                self._assign(slot)
        starting = sum(not slot.is_ready for slot in self._slots)
        if self._broken is None:
            for _ in range(min(len(self._waiting) - starting, self._workers - len(self._slots))):
                self._start_slot()
        self._set_limit_for_the_first()

    def _set_limit_for_the_first(self) -> None:
        """Work that waits while no actor is ready must not wait for ever."""
        if not self._waiting or any(slot.is_ready for slot in self._slots):
            self._ready_by = None
        elif self._ready_by is None:
            self._ready_by = time.monotonic() + self._start_limit_s

    def _start_slot(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT)}
        remote = self._ray.remote(Supervisor).options(
            max_concurrency=2, max_restarts=0, scheduling_strategy="SPREAD", **self._claims
        )
        self._started += 1
        slot = _Slot(remote.remote(self._preload, environment, self._max_mebibytes), self._started)
        self._slots.append(slot)
        self._hear(slot.actor.ready.remote(), partial(self._on_ready, slot))

    def _assign(self, slot: _Slot) -> None:
        while self._waiting:
            job = self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                slot.job = job
                slot.answer_by = time.monotonic() + job.timeout_s + ANSWER_MARGIN_S if job.timeout_s else None
                self._hear(slot.actor.run.remote(job.blob, job.timeout_s), partial(self._on_answer, slot))
                return

    def _hear(self, reference: Any, then: Callable[[Future[Any]], None]) -> None:
        """Turn the end of a remote call into an event of our own thread."""
        reference.future().add_done_callback(lambda future: self._events.put(partial(then, future)))

    def _take_events(self) -> None:
        with contextlib.suppress(queue.Empty):
            self._events.get(timeout=self._seconds_to_wait())()
            self._take_waiting_events()

    def _take_waiting_events(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._events.get_nowait()()

    def _seconds_to_wait(self) -> float | None:
        moments = [moment for moment in (self._kill_at, self._ready_by) if moment is not None]
        moments += [self._probe_at] if self._slots or self._waiting else []
        moments += [slot.answer_by for slot in self._slots if slot.answer_by is not None]
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _on_ready(self, slot: _Slot, future: Future[Any]) -> None:
        if slot not in self._slots:
            return
        if (error := future.exception()) is not None:
            self._failed_starts += 1
            self._slots.remove(slot)
            if self._failed_starts >= MAX_FAILED_STARTS:
                self._broken = f"stopped because Ray workers end while starting: {_first_line(error)}"
            return
        slot.place, version = future.result()
        if version != code_version():
            self._refuse(slot)
            return
        slot.is_ready, self._failed_starts = True, 0
        self._hear(slot.actor.stay.remote(), partial(self._on_end, slot))
        self._say(f"worker {slot.number} is ready on {slot.place}")

    def _on_answer(self, slot: _Slot, future: Future[Any]) -> None:
        if slot not in self._slots or slot.job is None:
            return
        if future.exception() is not None:
            self._lose(slot)
            return
        job, slot.job, slot.answer_by = slot.job, None, None
        value, fault, lines = future.result()
        for line in lines:
            self._say(f"worker {slot.number}: {line}")
        job.end(value, fault)

    def _on_end(self, slot: _Slot, future: Future[Any]) -> None:
        if slot in self._slots:
            self._lose(slot)

    def _lose(self, slot: _Slot) -> None:
        """The actor or its node is gone. Its item is not to blame, and is tried again by the runner."""
        self._slots.remove(slot)
        if slot.job is not None:
            slot.job.end(error=WorkerLost(f"the worker on {slot.place} was lost while it had the item"))
        self._say(f"worker {slot.number} on {slot.place} is lost")
        self._kill(slot)

    def _refuse(self, slot: _Slot) -> None:
        """Rows of other code would be taken for current ones for good."""
        self._broken = (
            f"stopped because {slot.place} has another version of ingest_assets; install the same everywhere"
        )
        self._slots.remove(slot)
        self._kill(slot)

    def _look_at_the_clock(self) -> None:
        now = time.monotonic()
        for slot in [each for each in self._slots if each.answer_by is not None and each.answer_by <= now]:
            self._lose(slot)
        if self._ready_by is not None and self._ready_by <= now:
            self._ready_by = None
            asked = ", ".join(f"{name} = {value:g}" for name, value in self._claims.items() if value)
            self._broken = (
                f"stopped because the Ray cluster placed no worker within {self._start_limit_s:g} s "
                f"(each asks for {asked or 'nothing'})"
            )
        if self._probe_at <= now:
            self._probe(now)

    def _probe(self, now: float) -> None:
        """A cluster that is gone says nothing; and Ray ends this whole process a minute after its head."""
        if is_alive():
            self._alive_at = now
        elif now - self._alive_at >= GONE_AFTER_S:
            self._broken = "stopped because the Ray cluster is gone: its head or all its nodes do not answer"
        self._probe_at = time.monotonic() + PROBE_INTERVAL_S

    def _end_all(self) -> None:
        self._take_waiting_events()  # a call that was submitted just now must be answered too
        for slot in self._slots:
            if slot.job is not None:
                slot.job.end(error=cancelled())
        self._cancel_waiting()
        if is_alive():
            for slot in self._slots:
                self._kill(slot)

    def _kill(self, slot: _Slot) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError):
            self._ray.kill(slot.actor, no_restart=True)

    def _cancel_waiting(self) -> None:
        while self._waiting:
            self._waiting.popleft().future.cancel()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
