"""Leases in hand: heartbeats keep them, a stop ends the work under them, a lost one ends it too."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

from ingest_assets.intake.artifacts import Lease
from ingest_assets.intake.queue import Queue
from ingest_assets.model.errors import ItemError
from ingest_assets.model.options import QueueOptions

# Runs a call and gives what it raised, if it is an error that must not end the thread.
Guard = Callable[[Callable[[], object]], BaseException | None]
_log = logging.getLogger(__name__)


class Stopped(ItemError):
    """The run was told to stop while the artifact was on its way; what came is kept to go on from."""

    category = "cancelled"
    code = "E_STOPPED"
    retryable = True


class LeaseLost(ItemError):
    """Another worker has the artifact now: this one was silent for too long."""

    category = "runtime"
    code = "E_LEASE_LOST"
    retryable = True


class Leases:
    """The leases of one process. A thread of its own beats for all of them while the block lasts."""

    def __init__(self, queue: Queue, options: QueueOptions, guard: Guard, clock: Callable[[], float]) -> None:
        self._queue, self._options, self._guard, self._clock = queue, options, guard, clock
        self._held: set[str] = set()
        self._lost: set[str] = set()
        self._stopping, self._over = threading.Event(), threading.Event()
        self._beats = threading.Thread(target=self._beat, name="ingest-heartbeat", daemon=True)

    def __enter__(self) -> "Leases":
        self._beats.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._beats.join(self._options.heartbeat_seconds)

    @property
    def is_stopping(self) -> bool:
        """True once nothing more is to be begun."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Begin nothing more, and end what is under way at its next piece."""
        self._stopping.set()

    def sleep(self, seconds: float) -> bool:
        """Wait, and say whether a stop cut it short."""
        return self._stopping.wait(seconds)

    def give_back(self) -> None:
        """Let go of what is held still: whoever hangs there finds its lease lost, should it ever go on."""
        for token in list(self._held):
            self._queue.release(token, self._clock())

    @contextlib.contextmanager
    def holding(self, lease: Lease) -> Iterator[Callable[[int], None]]:
        """Keep a lease alive for the length of a block; the block calls what it is given for every piece."""
        self._held.add(lease.token)
        try:
            yield lambda _count: self._require(lease)
        finally:
            self._held.discard(lease.token)
            self._lost.discard(lease.token)

    def _require(self, lease: Lease) -> None:
        if self._stopping.is_set():
            raise Stopped(f"{lease.artifact.artifact_id} was on its way when the run was stopped.")
        if lease.token in self._lost:
            raise LeaseLost(f"{lease.artifact.artifact_id} is another worker's by now.")

    def _beat(self) -> None:
        """A ledger that is away for a moment must not end the heartbeats: a lease outlives several."""
        while not self._over.wait(self._options.heartbeat_seconds):
            error = self._guard(self._beat_once)
            if error is not None:
                _log.warning("A heartbeat failed and is tried again: %s", error)

    def _beat_once(self) -> None:
        for token in list(self._held):
            if not self._queue.heartbeat(token, self._clock()) and token in self._held:
                self._lost.add(token)
