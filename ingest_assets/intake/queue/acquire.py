"""Acquire the artifacts of a batch: lease, fetch or copy, heartbeat, and record the result.

Any number of processes can work on the same batch; each lease is held by one of them. An artifact that has to
wait longer than a few seconds (a backoff, a paused host, a quota) is left to a later run.
"""

import contextlib
import logging
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ingest_assets.core.errors import DocumentMissing, DocumentUnreadable, ItemError, NotAFile
from ingest_assets.core.items import Blob
from ingest_assets.core.ports import BlobStore
from ingest_assets.intake.fetch import Fetcher, NotModified, Validators
from ingest_assets.intake.fetch.errors import FetchError, HostPaused, NotFound
from ingest_assets.intake.fetch.sniffing import HEAD_BYTES, Sniffer
from ingest_assets.intake.queue.artifacts import FINAL_STATES, Artifact, Failure, Lease
from ingest_assets.intake.queue.catalogue import Acquired, Catalogue
from ingest_assets.intake.queue.metrics import QueueMetrics
from ingest_assets.intake.queue.queue import Queue
from ingest_assets.intake.queue.quotas import Quotas
from ingest_assets.settings.intake import QueueOptions

# A run waits this long for an artifact; longer waits are left to another run.
MAX_LEASE_WAIT_S = 5.0
# Seconds between attempts to lease; doubles from the first value up to the last.
_FIRST_POLL_S, _LAST_POLL_S = 0.05, 1.0
_SHOW_S = 10.0  # between two lines of progress
_BLOCK = 1024 * 1024

# Runs a call and returns the error it raised, unless that error must end the thread.
Guard = Callable[[Callable[[], object]], BaseException | None]
_log = logging.getLogger(__name__)


class Stopped(ItemError):
    """The run was stopped during the download; received bytes are kept, so that it can resume."""

    category = "cancelled"
    code = "E_STOPPED"
    retryable = True


class LeaseLost(ItemError):
    """Another worker has the artifact now, because this one sent no heartbeat for too long."""

    category = "runtime"
    code = "E_LEASE_LOST"
    retryable = True


class Leases:
    """The leases of one process. A stop or a lost lease ends the work on the artifact.

    One thread sends the heartbeats of all leases until the `with` block ends.
    """

    def __init__(self, queue: Queue, options: QueueOptions, guard: Guard, clock: Callable[[], float]) -> None:
        self._queue, self._options, self._guard, self._clock = queue, options, guard, clock
        self._held: set[str] = set()
        self._lost: set[str] = set()
        self.stopping = threading.Event()  # set: start nothing more, stop downloads at their next piece
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._send_heartbeats, name="ingest-heartbeat", daemon=True)

    def __enter__(self) -> "Leases":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join(self._options.heartbeat_seconds)

    def release_all(self) -> None:
        """Release all leases; a stuck worker will find its lease gone."""
        for token in list(self._held):
            self._queue.release(token, self._clock())

    @contextlib.contextmanager
    def holding(self, lease: Lease) -> Iterator[Callable[[int], None]]:
        """Keep a lease alive during a `with` block, which calls the yielded function for every piece."""

        def require_held(_count: int) -> None:
            if self.stopping.is_set():
                raise Stopped(f"{lease.artifact.artifact_id}: the run was stopped during the download.")
            if lease.token in self._lost:
                raise LeaseLost(f"{lease.artifact.artifact_id}: the lease expired; another worker has it.")

        self._held.add(lease.token)
        try:
            yield require_held
        finally:
            self._held.discard(lease.token)
            self._lost.discard(lease.token)

    def _send_heartbeats(self) -> None:
        """Send heartbeats until closed. Errors are logged, since a lease outlives several missed ones."""

        def send_once() -> None:
            for token in list(self._held):
                if not self._queue.heartbeat(token, self._clock()) and token in self._held:
                    self._lost.add(token)

        while not self._closed.wait(self._options.heartbeat_seconds):
            error = self._guard(send_once)
            if error is not None:
                _log.warning("Heartbeat failed; retrying: %s", error)


# Stores the bytes of an artifact within a number of seconds, or reports that they have not changed. Calls the
# function for every piece received.
Getter = Callable[[Artifact, float, Callable[[int], None]], Acquired | NotModified]


@dataclass(slots=True)
class Acquisition:
    """The artifacts of a run, counted by how they ended, and the bytes received."""

    ended: Counter[str] = field(default_factory=Counter)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class QueueServices:
    """The parts of the ledger that acquisition uses."""

    queue: Queue
    catalogue: Catalogue
    quotas: Quotas
    measures: QueueMetrics
    options: QueueOptions


class Acquirer:
    """Acquires the artifacts of one batch with several threads."""

    def __init__(
        self,
        services: QueueServices,
        get: Getter,
        guard: Guard,
        worker: str,
        *,
        max_seconds: float,
        grace_s: float = 0.0,
        tell: Callable[[str], None] = lambda _line: None,
        show: Callable[["Acquisition"], None] = lambda _so_far: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._services, self._get, self._guard = services, get, guard
        self._worker, self._max_seconds, self._grace_s = worker, max_seconds, grace_s
        self._tell, self._show, self._clock = tell, show, clock
        self._leases = Leases(services.queue, services.options, guard, clock)
        self._report = Acquisition()
        self._lock, self._lease_lock, self._has_room = threading.Lock(), threading.Lock(), threading.Event()
        self._broken: BaseException | None = None

    def run(self, batch: str) -> Acquisition:
        """Run until no artifact of the batch can be leased soon. An interrupt releases all leases."""
        due = self._services.queue.due(batch, self._clock() + MAX_LEASE_WAIT_S)
        # Wait for events, not threads: before Python 3.13 an interrupted join marks a thread as ended.
        ends: list[threading.Event] = []
        with self._leases:
            try:
                for number in range(min(self._services.options.max_workers, due)):
                    end, name = threading.Event(), f"ingest-acquire-{number}"
                    threading.Thread(target=self._work, args=(batch, end), name=name, daemon=True).start()
                    ends.append(end)
                for end in ends:
                    while not end.wait(_SHOW_S):
                        self._show(self._report)
            except BaseException:
                # Threads stop at the next piece they receive; the wait ends with the grace period.
                self.stop()
                until_s = time.monotonic() + self._grace_s
                for end in ends:
                    end.wait(max(0.0, until_s - time.monotonic()))
                self._leases.release_all()
                raise
        if self._broken is not None:
            raise self._broken
        self._services.measures.depth(self._services.queue.stats(self._clock()))
        return self._report

    def stop(self) -> None:
        """Start no further downloads; running ones stop at the next piece and release their leases.

        Can be called from any thread.
        """
        self._leases.stopping.set()
        self._has_room.set()

    def _work(self, batch: str, end: threading.Event) -> None:
        """Acquire until nothing is left. An unreachable ledger ends the run: no result could be stored."""

        def take_all() -> None:
            while (lease := self._next(batch)) is not None:
                self._take(lease)
                self._services.measures.store()

        try:
            error = self._guard(take_all)
            if error is not None:
                self._broken = error
                self.stop()
        finally:
            end.set()

    def _next(self, batch: str) -> Lease | None:
        """Wait for the next lease; None if no artifact is due soon.

        One thread at a time polls and the others wait for it, to keep the load on the ledger low.
        """
        poll_s = _FIRST_POLL_S
        with self._lease_lock:
            while not self._leases.stopping.is_set():
                self._has_room.clear()
                leases = self._services.queue.lease(self._worker, 1, self._clock(), batch=batch)
                if leases:
                    return leases[0]
                if not self._services.queue.due(batch, self._clock() + MAX_LEASE_WAIT_S):
                    return None
                self._has_room.wait(poll_s)
                poll_s = min(2 * poll_s, _LAST_POLL_S)
        return None

    def _take(self, lease: Lease) -> None:
        with self._leases.holding(lease) as require_held:
            if not self._has_quota(lease):
                return
            received_bytes = 0

            def on_bytes(count: int) -> None:
                nonlocal received_bytes
                received_bytes += count
                require_held(count)

            started_s = time.monotonic()
            got: list[Acquired | NotModified] = []
            error = self._guard(lambda: got.append(self._get(lease.artifact, self._max_seconds, on_bytes)))
            if not isinstance(error, HostPaused | Stopped):
                seconds = time.monotonic() - started_s
                self._services.measures.fetched(received_bytes, seconds, lease.artifact.resolver)
            with self._lock:
                self._report.size_bytes += received_bytes
            if error is not None:
                self._failed(lease, error)
            elif isinstance(result := got[0], NotModified):
                etag, last_modified, now = result.etag, result.last_modified, self._clock()
                self._count(lease, self._services.catalogue.unchanged(lease, etag, last_modified, now))
            else:
                self._count(lease, self._services.catalogue.done(lease, result, self._clock()))
        self._has_room.set()

    def _has_quota(self, lease: Lease) -> bool:
        """True if the resolver's quota allows a request; otherwise release the lease for later."""
        resolver = lease.artifact.resolver
        while (wait_s := self._services.quotas.take(resolver, self._clock())) > 0:
            self._services.measures.throttled(resolver)
            if wait_s > MAX_LEASE_WAIT_S or self._leases.stopping.wait(wait_s):
                self._release(lease, wait_s)
                return False
        return True

    def _failed(self, lease: Lease, error: BaseException) -> None:
        if isinstance(error, LeaseLost):
            self._count(lease, None)
        elif isinstance(error, Stopped):
            self._release(lease, 0.0)
        elif isinstance(error, HostPaused):
            self._services.measures.throttled(lease.artifact.resolver)
            self._release(lease, float(error.detail["retry_after_s"]))
        elif isinstance(error, NotFound):
            self._count(lease, self._services.catalogue.gone(lease, Failure.of(error), self._clock()))
        else:
            wait_s = error.detail.get("retry_after_s") if isinstance(error, FetchError) else None
            queue, failure = self._services.queue, Failure.of(error)
            is_held = queue.fail_and_retry(lease.token, failure, self._clock(), wait_s)
            self._count(lease, queue.get(lease.artifact.artifact_id) if is_held else None)

    def _release(self, lease: Lease, wait_s: float) -> None:
        self._services.queue.release(lease.token, self._clock(), wait_s)
        self._add("released")

    def _count(self, lease: Lease, ended: Artifact | None) -> None:
        """Count how an artifact ended; None if the lease was lost, and another worker counts it."""
        measures, resolver = self._services.measures, lease.artifact.resolver
        if ended is None:
            self._add("lost")
            return
        if ended.last_error is not None:
            self._tell(f"{ended.artifact_id}: {ended.last_error.message}")
        if ended.state in FINAL_STATES:
            self._add(ended.state)
            measures.completed(ended.state, resolver)
        else:  # back in the queue; another worker may already have leased it
            self._add("to be retried")
            measures.retried(resolver)

    def _add(self, end: str) -> None:
        with self._lock:
            self._report.ended[end] += 1


# Where the bytes of an artifact come from: its URL, or its file.


def copy_file(
    path: Path, blobs: BlobStore, sniff: Sniffer, on_bytes: Callable[[int], None]
) -> tuple[Blob, str]:
    """Copy a file to the store; return the copy, and the media type by name and first bytes."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise NotAFile(f"{path} is not a regular file; queue a file, or watch the folder.")
        head = b""
        with path.open("rb") as stream, blobs.download(f"file {path}") as download:
            download.restart(None)
            while block := stream.read(_BLOCK):
                head = head or block[:HEAD_BYTES]
                download.write(block)
                on_bytes(len(block))
            return download.finish(), sniff(path.name, head)
    except FileNotFoundError:
        raise DocumentMissing(f"{path} does not exist; correct the path or restore the file.") from None
    except OSError as error:
        raise DocumentUnreadable(
            f"{path} cannot be copied ({error.strerror}); check permissions and free space."
        ) from None


@dataclass(frozen=True, slots=True)
class GetBytes:
    """Fetches or copies into the store; a known artifact is fetched with a conditional request."""

    fetcher: Fetcher
    blobs: BlobStore
    sniff: Sniffer

    def __call__(
        self, artifact: Artifact, max_seconds: float, on_bytes: Callable[[int], None]
    ) -> Acquired | NotModified:
        """Return the stored bytes, or `NotModified`."""
        if artifact.url is None:
            blob, mime = copy_file(Path(artifact.path or ""), self.blobs, self.sniff, on_bytes)
            return Acquired(blob, mime)
        known = Validators(artifact.etag, artifact.last_modified, artifact.content_hash)
        fetched = self.fetcher.fetch(
            artifact.url,
            known if artifact.content_hash else None,
            max_seconds=max_seconds,
            on_bytes=on_bytes,
        )
        if isinstance(fetched, NotModified):
            return fetched
        return Acquired(
            Blob(fetched.path, fetched.content_hash, fetched.size_bytes, fetched.is_new),
            fetched.media_type,
            fetched.etag,
            fetched.last_modified,
            {
                "final_url": fetched.final_url,
                "declared_type": fetched.declared_type,
                "charset": fetched.charset,
                "resumed_from_bytes": fetched.resumed_from_bytes,
            },
        )
