"""A pool of actors on a Ray cluster.

One thread owns all actors and waits for events: a new job, or an actor that is ready, has a result or ended.
An actor gets one item at a time and only when it is idle, so items do not queue up on the cluster.
"""

import contextlib
import logging
import os
import queue
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Any

from ingest_assets.backends.jobs import JobBackend, pickled
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
from ingest_assets.core.ports import Work

# The actor: a supervisor of one worker process.
#
# Items run in a child process of the actor. So an item that hangs or crashes is handled by the same code, and
# with the same messages, as on one machine; and if the actor itself ends, the item did not cause it.

MAX_LINES = 200  # kept per item; Ray's own log has all of its output


class Supervisor:
    """One worker slot of a stage on the cluster. `wait_forever` and `run` are called concurrently."""

    def __init__(
        self, preload: Sequence[str], environment: Mapping[str, str], max_mebibytes: int = 0
    ) -> None:
        if "OMP_NUM_THREADS" not in environment:  # Ray sets it, which changes the threads of native code
            os.environ.pop("OMP_NUM_THREADS", None)
        os.environ.update(environment)
        self._output = _Output()
        self._backend = ProcessBackend(1, preload, start_method="spawn", max_mebibytes=max_mebibytes)

    def ready(self) -> tuple[str, str]:
        """Return the host and node of this worker, and its code version."""
        import ray

        host = f"{socket.gethostname()} (node {ray.get_runtime_context().get_node_id()[:8]})"
        return host, code_version()

    def wait_forever(self) -> None:
        """Never return. The call fails when the actor ends, which notifies its owner at once."""
        threading.Event().wait()

    def run(self, blob: bytes, timeout_s: float) -> tuple[Any, ItemError | None, list[str]]:
        """Run pickled work; return its value, its error and its output.

        If the backend fails, the actor ends, and its owner starts another.
        """
        try:
            job_id = self._backend.submit_pickled(blob, timeout_s)
            return self._backend.get_result(job_id), None, self._output.take()
        except (ItemCancelled, SubmitFailed):
            os._exit(1)
        except ItemError as error:
            return None, error, self._output.take()


class _Output:
    """The output of this process and its worker: copied to Ray's own log, with the last lines kept."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._original = os.dup(2)
        reading, writing = os.pipe()
        for stream in (1, 2):
            os.dup2(writing, stream)
        os.close(writing)
        threading.Thread(target=self._copy, args=(reading,), name="ingest-output", daemon=True).start()

    def take(self) -> list[str]:
        """Return the lines since the last call."""
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


# The connection to a Ray cluster: one per process, to an address or to a cluster that it starts.

# Only small references are sent, so the smallest object store that Ray accepts is enough.
_OBJECT_STORE_BYTES = 100 * MIB
# Ray must not start a new cluster if ours is lost, and must not send usage statistics.
_DEFAULTS = {"RAY_ENABLE_AUTO_CONNECT": "0", "RAY_USAGE_STATS_ENABLED": "0"}
_CLIENT = "ray://"
_REACH_LIMIT_S = 10.0

_address: str | None = None


def import_ray() -> ModuleType:
    """Import Ray; `ConfigError` with the install command if it is missing."""
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
    """Connect to the cluster at an address, or start one if it is empty.

    An existing connection of this process (of a notebook or a test) is kept.
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
    """Raise `OSError` if no process listens at the address; Ray itself would retry for minutes."""
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_REACH_LIMIT_S).close()


@contextlib.contextmanager
def _keeping_sigterm() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


def _explain(address: str, error: Exception) -> str:
    reason = _first_line(error)
    if not address:
        return (
            f"execution.backend: cannot start a Ray cluster here ({reason}). Set execution.address to a "
            "running cluster, or execution.backend to local."
        )
    return (
        f"execution.address: no Ray cluster can be used at {address!r} ({reason}); check the address, that "
        "Ray and Python have the same versions there, and RAY_AUTH_MODE=token if the cluster needs a token."
    )


def disconnect() -> None:
    """Disconnect from the cluster; one that this process started ends."""
    global _address
    import_ray().shutdown()
    _address = None


def is_alive() -> bool:
    """True if the head responds and reports at least one live node."""
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
    """True for addresses of Ray Client, a proxy with its own limits."""
    return address.startswith(_CLIENT)


def owns_cluster() -> bool:
    """True if this process started its cluster, which then has no other users."""
    return _address == ""


def cluster_machine() -> Machine:
    """Return the total resources of the cluster; for our own cluster, those that this process can use."""
    resources = import_ray().cluster_resources()
    gpus = int(resources.get("GPU", 0))
    if owns_cluster():
        return replace(probe(), gpus=gpus)
    return Machine(max(1, int(resources.get("CPU", 0))), int(resources.get("memory", 0)) // MIB, gpus)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


CLOSE_LIMIT_S = 10.0
MAX_FAILED_STARTS = 5  # in a row: the cause is probably permanent, such as a failing import
PROBE_INTERVAL_S = 5.0
CLUSTER_TIMEOUT_S = 25.0  # below the minute after which Ray ends this process
# Added to the time limit of an item before its actor counts as lost: its worker can still be starting.
RESULT_MARGIN_S = START_LIMIT_S + 30.0
# Variables that change results, or where telemetry goes; all others belong to the node.
_ENVIRONMENT = ("INGEST_", "HF_", "TRANSFORMERS_", "TOKENIZERS_", "DOCLING_", "OMP_", "OTEL_")


@dataclass(eq=False, slots=True)
class _Slot:
    """An actor that is starting, idle or busy. When it ends, the slot is discarded and not reused."""

    actor: Any
    number: int
    host: str = ""
    is_ready: bool = False
    job: Job | None = None
    result_by: float | None = None


class RayBackend(JobBackend):
    """At most `workers` actors, started when work arrives and reused for later items.

    The process must be connected to a cluster (`connect`). The item of a lost actor or node ends with
    `WorkerLost`, and another actor is started. `say` receives the hosts of workers and their output.
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
        super().__init__()
        self._ray = import_ray()
        self.workers = max(1, workers)  # the cluster can have placed fewer actors so far
        self._preload = tuple(preload)
        self._resources = {"num_cpus": num_cpus, "num_gpus": num_gpus}
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
        """The reason if the cluster places no workers or is lost."""
        has_ended = self._thread is not None and not self._thread.is_alive() and not self._closed
        return "stopped because the Ray cluster is lost; see the log" if has_ended else self._broken

    def _start(self, work: Work, timeout_s: float) -> Future[Any]:
        job = Job(pickled(work), timeout_s)
        if self._closed:
            raise SubmitFailed("the backend is closed")
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ingest-ray", daemon=True)
            self._thread.start()
        if not self._thread.is_alive():
            raise SubmitFailed("the backend failed; see its log")
        self._events.put(partial(self._waiting.append, job))
        return job.future

    def close(self, grace_s: float = 0.0) -> None:
        """Let running jobs finish for `grace_s`, then kill them. Every job has a result afterwards."""
        self._closed = True
        if self._thread is None:
            return
        try:
            self._stop(grace_s)
            self._thread.join(grace_s + CLOSE_LIMIT_S)
        finally:
            if self._thread.is_alive():  # interrupted, or hanging
                self._stop(0)
                self._thread.join(CLOSE_LIMIT_S)

    def _stop(self, grace_s: float) -> None:
        self._kill_at = time.monotonic() + grace_s
        self._events.put(lambda: None)

    def _run(self) -> None:
        try:
            while self._has_more_to_do():
                self._start_and_assign()
                self._handle_events()
                self._check_deadlines()
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
        # Limit how long work waits while no actor is ready.
        if not self._waiting or any(slot.is_ready for slot in self._slots):
            self._ready_by = None
        elif self._ready_by is None:
            self._ready_by = time.monotonic() + self._start_limit_s

    def _start_slot(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT)}
        remote = self._ray.remote(Supervisor).options(
            max_concurrency=2, max_restarts=0, scheduling_strategy="SPREAD", **self._resources
        )
        self._started += 1
        slot = _Slot(remote.remote(self._preload, environment, self._max_mebibytes), self._started)
        self._slots.append(slot)
        self._on_end(slot.actor.ready.remote(), partial(self._on_ready, slot))

    def _assign(self, slot: _Slot) -> None:
        while self._waiting:
            job = self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                slot.job = job
                slot.result_by = time.monotonic() + job.timeout_s + RESULT_MARGIN_S if job.timeout_s else None
                self._on_end(slot.actor.run.remote(job.blob, job.timeout_s), partial(self._on_result, slot))
                return

    def _on_end(self, reference: Any, handler: Callable[[Future[Any]], None]) -> None:
        """Queue an event for the thread when a remote call ends."""
        reference.future().add_done_callback(lambda future: self._events.put(partial(handler, future)))

    def _handle_events(self) -> None:
        """Wait for the first event, then handle all that are queued."""
        with contextlib.suppress(queue.Empty):
            self._events.get(timeout=self._seconds_to_wait())()
            while True:
                self._events.get_nowait()()

    def _seconds_to_wait(self) -> float | None:
        times = [at for at in (self._kill_at, self._ready_by) if at is not None]
        times += [self._probe_at] if self._slots or self._waiting else []
        times += [slot.result_by for slot in self._slots if slot.result_by is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _on_ready(self, slot: _Slot, future: Future[Any]) -> None:
        if slot not in self._slots:
            return
        if (error := future.exception()) is not None:
            self._failed_starts += 1
            self._slots.remove(slot)
            if self._failed_starts >= MAX_FAILED_STARTS:
                self._broken = f"stopped because Ray workers fail to start: {_first_line(error)}"
            return
        slot.host, version = future.result()
        if version != code_version():  # rows of other code would count as current
            self._slots.remove(slot)
            self._kill(slot)
            self._broken = (
                f"stopped because {slot.host} has another version of ingest_assets; "
                "install the same version on all nodes"
            )
            return
        slot.is_ready, self._failed_starts = True, 0
        self._on_end(slot.actor.wait_forever.remote(), lambda _: self._lose(slot))
        self._say(f"worker {slot.number} is ready on {slot.host}")

    def _on_result(self, slot: _Slot, future: Future[Any]) -> None:
        if future.exception() is not None:
            self._lose(slot)
        if slot not in self._slots or slot.job is None:
            return
        job, slot.job, slot.result_by = slot.job, None, None
        value, error, lines = future.result()
        for line in lines:
            self._say(f"worker {slot.number}: {line}")
        job.end(value, error)

    def _lose(self, slot: _Slot) -> None:
        """Remove an actor that is gone, or whose node is. The runner retries its item."""
        if slot not in self._slots:
            return
        self._slots.remove(slot)
        if slot.job is not None:
            slot.job.end(error=WorkerLost(f"the worker on {slot.host} was lost while it ran the item"))
        self._say(f"worker {slot.number} on {slot.host} is lost")
        self._kill(slot)

    def _check_deadlines(self) -> None:
        now = time.monotonic()
        for slot in [slot for slot in self._slots if slot.result_by is not None and slot.result_by <= now]:
            self._lose(slot)
        if self._ready_by is not None and self._ready_by <= now:
            self._ready_by = None
            requests = ", ".join(f"{name} = {value:g}" for name, value in self._resources.items() if value)
            self._broken = (
                f"stopped because the Ray cluster placed no worker within {self._start_limit_s:g} s "
                f"(each requests {requests or 'nothing'}); lower execution.num_cpus or num_gpus, or add nodes"
            )
        if self._probe_at <= now:
            if is_alive():
                self._alive_at = now
            elif now - self._alive_at >= CLUSTER_TIMEOUT_S:  # a lost cluster causes no events
                self._broken = (
                    "stopped because the Ray cluster is lost: its head or all its nodes do not respond"
                )
            self._probe_at = time.monotonic() + PROBE_INTERVAL_S

    def _end_all(self) -> None:
        with contextlib.suppress(queue.Empty):
            while True:  # a job that was submitted just now needs a result too
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
