"""Items on warm actors of a Ray cluster.

One thread owns all actors and waits for events: a call was submitted, an actor is ready, answered or ended.
An actor gets one item at a time and only when it is idle, so nothing queues up on the cluster.
"""

import contextlib
import logging
import os
import pickle
import queue
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

from ingest_assets.backends.processes import ProcessBackend
from ingest_assets.backends.worker_process import START_LIMIT_S, Job, cancelled
from ingest_assets.backends.workers import MIB, Machine, probe
from ingest_assets.core.errors import (
    ConfigError,
    IngestError,
    ItemCancelled,
    ItemError,
    SubmitFailed,
    WorkerLost,
)
from ingest_assets.core.identity import code_version
from ingest_assets.core.items import ItemContext, WorkItem
from ingest_assets.core.ports import Call

# What runs on a Ray cluster: a supervisor that keeps one warm worker process and answers for it.
#
# The item runs in a process below the actor, not in the actor. So an item that hangs is killed at its limit
# and one that crashes is named with its signal, by the same code and in the same words as on one machine; and
# when the actor itself ends, that was never the item's doing.

MAX_LINES = 200  # of what an item prints; the rest stands in Ray's own log


class Supervisor:
    """One worker slot of a stage, somewhere on the cluster. `stay` and `run` run at the same time."""

    def __init__(
        self, preload: Sequence[str], environment: Mapping[str, str], max_mebibytes: int = 0
    ) -> None:
        if "OMP_NUM_THREADS" not in environment:  # Ray sets it; native code would count threads differently
            os.environ.pop("OMP_NUM_THREADS", None)
        os.environ.update(environment)
        self._output = _Output()
        self._backend = ProcessBackend(1, preload, start_method="spawn", max_mebibytes=max_mebibytes)

    def ready(self) -> tuple[str, str]:
        """Where this worker is, and which code it has."""
        import ray

        place = f"{socket.gethostname()} (node {ray.get_runtime_context().get_node_id()[:8]})"
        return place, code_version()

    def stay(self) -> None:
        """Never returns: the call fails when the actor ends, and so its owner hears of it at once."""
        threading.Event().wait()

    def run(self, blob: bytes, timeout_s: float) -> tuple[Any, ItemError | None, list[str]]:
        """The call's value or how it ended, and what was printed meanwhile.

        A backend that broke down here makes this actor useless: it ends, and its owner starts another.
        """
        try:
            return self._backend.submit_pickled(blob, timeout_s).result(), None, self._output.take()
        except (ItemCancelled, CancelledError, SubmitFailed):
            os._exit(1)
        except ItemError as error:
            return None, error, self._output.take()


class _Output:
    """Everything this process and its worker print: copied to Ray's own log, the last lines kept."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._original = os.dup(2)
        reading, writing = os.pipe()
        for stream in (1, 2):
            os.dup2(writing, stream)
        os.close(writing)
        threading.Thread(target=self._copy, args=(reading,), name="ingest-output", daemon=True).start()

    def take(self) -> list[str]:
        """The lines since the last time."""
        lines = []
        with contextlib.suppress(IndexError):
            while True:
                lines.append(self._lines.popleft())
        return lines

    def _copy(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as output:
            rest = b""
            while piece := output.read(65536):
                with contextlib.suppress(OSError):
                    os.write(self._original, piece)
                *lines, rest = (rest + piece).split(b"\n")
                self._lines.extend(line.decode("utf-8", "replace").rstrip() for line in lines)


# The connection to a Ray cluster: one per process, to an address or to a cluster of its own.

# Only small references cross the wire, so the object store may be the smallest that Ray takes.
_OBJECT_STORE_BYTES = 100 * MIB
# Ray must not start a cluster where ours was lost, nor report home.
_DEFAULTS = {"RAY_ENABLE_AUTO_CONNECT": "0", "RAY_USAGE_STATS_ENABLED": "0"}
_CLIENT = "ray://"
_REACH_LIMIT_S = 10.0

_address: str | None = None


def import_ray() -> ModuleType:
    """Ray, or a line that says how to get it and how to do without."""
    for name, value in _DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise ConfigError(
            "execution.backend: ray is not installed; install it with `pip install 'ingest-assets[ray]'`, "
            'or set execution.backend = "local".'
        ) from None
    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


def connect(address: str) -> None:
    """Be connected to the cluster at an address; an empty one means a cluster that this process starts.

    Who has connected this process before (a notebook, a test) keeps the connection.
    """
    global _address
    ray = import_ray()
    if ray.is_initialized():
        if (_address is None or _address == address) and is_alive():
            return
        disconnect()
    options = {"namespace": "ingest", "log_to_driver": False, "logging_level": logging.ERROR}
    if not address:
        machine = probe()
        options |= {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
        options |= {"num_cpus": machine.cores, "configure_logging": False}
    try:
        _require_listener(address)
        with _keeping_sigterm():
            ray.init(address=address or "local", **options)
    except (ConnectionError, TimeoutError, ValueError, RuntimeError, OSError) as error:
        raise IngestError(_explain(address, error)) from error
    _address = address


def _require_listener(address: str) -> None:
    """Ask first whether anybody listens: Ray itself tries for minutes."""
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_LIMIT_S).close()


@contextlib.contextmanager
def _keeping_sigterm() -> Iterator[None]:
    """Ray takes SIGTERM for itself; who runs us has plans of their own for it."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _explain(address: str, error: Exception) -> str:
    why = _first_line(error)
    if not address:
        return f"execution.backend: no Ray cluster can be started here ({why})."
    return (
        f"execution.address: no Ray cluster can be used at {address!r} ({why}); check the address, that Ray "
        "and Python have the same versions there, and RAY_AUTH_MODE=token if the cluster asks for a token."
    )


def disconnect() -> None:
    """Leave the cluster; one of our own ends."""
    global _address
    import_ray().shutdown()
    _address = None


def is_alive() -> bool:
    """True when the head answers and knows of a node that lives."""
    ray = import_ray()
    if not ray.is_initialized():
        return False
    try:
        proxy = _address if _address is not None and is_client(_address) else None
        _require_listener(proxy or ray.get_runtime_context().gcs_address)
        return any(node["Alive"] for node in ray.nodes())
    except (OSError, RuntimeError, ray.exceptions.RayError):
        return False


def is_client(address: str) -> bool:
    """True for addresses that go through Ray Client, a proxy with limits of its own."""
    return address.startswith(_CLIENT)


def owns_cluster() -> bool:
    """True when this process started its cluster, so that nobody else's claims count there."""
    return _address == ""


def cluster_machine() -> Machine:
    """What the connected cluster has in all; a cluster of our own has what this machine may use."""
    found = import_ray().cluster_resources()
    gpus = int(found.get("GPU", 0))
    if owns_cluster():
        return replace(probe(), gpus=gpus)
    return Machine(max(1, int(found.get("CPU", 0))), int(found.get("memory", 0)) // MIB, gpus)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


CLOSE_LIMIT_S = 10.0
MAX_FAILED_STARTS = 5  # in a row: code that does not import there will not import at the sixth try
PROBE_INTERVAL_S = 5.0
GONE_AFTER_S = 25.0  # below the minute after which Ray ends this whole process
# What an actor may need beyond an item's own limit before it is taken for lost: its worker may be starting.
ANSWER_MARGIN_S = START_LIMIT_S + 30.0
# Variables that change what an item gives, or where telemetry goes; others are the node's own business.
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

    The process must be connected to a cluster (`connect`). A lost actor or node ends its item
    with `WorkerLost`, and another actor takes its place. `say` hears where workers are and what they print.
    """

    is_inline = False
    abandoned = 0  # an actor's worker can always be killed

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
        self.workers = max(1, workers)  # once the cluster has placed as many actors
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
            for _ in range(min(len(self._waiting) - starting, self.workers - len(self._slots))):
                self._start_slot()
        # Work that waits while no actor is ready must not wait for ever.
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
        """Wait for the first, then take what else is there."""
        with contextlib.suppress(queue.Empty):
            self._events.get(timeout=self._seconds_to_wait())()
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
        if version != code_version():  # rows of other code would be taken for current ones for good
            self._slots.remove(slot)
            self._kill(slot)
            self._broken = (
                f"stopped because {slot.place} has another version of ingest_assets; "
                "install the same everywhere"
            )
            return
        slot.is_ready, self._failed_starts = True, 0
        self._hear(slot.actor.stay.remote(), lambda _: self._lose(slot))
        self._say(f"worker {slot.number} is ready on {slot.place}")

    def _on_answer(self, slot: _Slot, future: Future[Any]) -> None:
        if future.exception() is not None:
            self._lose(slot)
        if slot not in self._slots or slot.job is None:
            return
        job, slot.job, slot.answer_by = slot.job, None, None
        value, fault, lines = future.result()
        for line in lines:
            self._say(f"worker {slot.number}: {line}")
        job.end(value, fault)

    def _lose(self, slot: _Slot) -> None:
        """The actor or its node is gone. Its item is not to blame, and is tried again by the runner."""
        if slot not in self._slots:
            return
        self._slots.remove(slot)
        if slot.job is not None:
            slot.job.end(error=WorkerLost(f"the worker on {slot.place} was lost while it had the item"))
        self._say(f"worker {slot.number} on {slot.place} is lost")
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
            if is_alive():
                self._alive_at = now
            elif now - self._alive_at >= GONE_AFTER_S:  # a cluster that is gone says nothing
                self._broken = (
                    "stopped because the Ray cluster is gone: its head or all its nodes do not answer"
                )
            self._probe_at = time.monotonic() + PROBE_INTERVAL_S

    def _end_all(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:  # a call that was submitted just now must be answered too
                self._events.get_nowait()()
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
