"""Acquiring the artifacts of a batch: lease, fetch or copy, heartbeat, and say how it ended.

Any number of processes may do this for the same batch at the same time: a lease is held by one of them. What
has to wait longer than a few seconds (a backoff, a host that rests, a quota) is left to a later run.
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
from ingest_assets.intake.fetch.errors import FetchError, HostResting, NotFound
from ingest_assets.intake.fetch.sniffing import HEAD_BYTES, Sniffer
from ingest_assets.intake.queue.acquired import Acquired, Catalogue
from ingest_assets.intake.queue.artifacts import FINAL_STATES, Artifact, Failure, Lease
from ingest_assets.intake.queue.metrics import Measures
from ingest_assets.intake.queue.queue import Queue
from ingest_assets.intake.queue.quotas import Quotas
from ingest_assets.settings.intake import QueueOptions

# What becomes possible within so many seconds is waited for, in place of another run.
PATIENCE_S = 5.0
# Waits between two looks for room double from the first to the last.
_FIRST_LOOK_S, _LAST_LOOK_S = 0.05, 1.0
_SHOW_S = 10.0  # between two lines of progress
_BLOCK = 1024 * 1024

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
    """The leases of one process: heartbeats keep them, a stop ends the work under them, a lost one too.

    A thread of its own beats for all of them while the block lasts.
    """

    def __init__(self, queue: Queue, options: QueueOptions, guard: Guard, clock: Callable[[], float]) -> None:
        self._queue, self._options, self._guard, self._clock = queue, options, guard, clock
        self._held: set[str] = set()
        self._lost: set[str] = set()
        self.stopping = threading.Event()  # set: begin nothing more, end what is under way at its next piece
        self._over = threading.Event()
        self._beats = threading.Thread(target=self._beat, name="ingest-heartbeat", daemon=True)

    def __enter__(self) -> "Leases":
        self._beats.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._beats.join(self._options.heartbeat_seconds)

    def give_back(self) -> None:
        """Let go of what is held still: whoever hangs there finds its lease lost, should it ever go on."""
        for token in list(self._held):
            self._queue.release(token, self._clock())

    @contextlib.contextmanager
    def holding(self, lease: Lease) -> Iterator[Callable[[int], None]]:
        """Keep a lease alive for the length of a block; the block calls what it is given for every piece."""

        def require(_count: int) -> None:
            if self.stopping.is_set():
                raise Stopped(f"{lease.artifact.artifact_id} was on its way when the run was stopped.")
            if lease.token in self._lost:
                raise LeaseLost(f"{lease.artifact.artifact_id} is another worker's by now.")

        self._held.add(lease.token)
        try:
            yield require
        finally:
            self._held.discard(lease.token)
            self._lost.discard(lease.token)

    def _beat(self) -> None:
        """A ledger that is away for a moment must not end the heartbeats: a lease outlives several."""

        def beat_once() -> None:
            for token in list(self._held):
                if not self._queue.heartbeat(token, self._clock()) and token in self._held:
                    self._lost.add(token)

        while not self._over.wait(self._options.heartbeat_seconds):
            error = self._guard(beat_once)
            if error is not None:
                _log.warning("A heartbeat failed and is tried again: %s", error)


# Gets the bytes of an artifact into the store within so many seconds, or word that they are still those, and
# tells of every piece that came.
Getter = Callable[[Artifact, float, Callable[[int], None]], Acquired | NotModified]


@dataclass(slots=True)
class Acquisition:
    """What became of the artifacts a run took: how many ended in which way, and the bytes received."""

    ended: Counter[str] = field(default_factory=Counter)
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Desk:
    """Everything acquiring needs of the ledger."""

    queue: Queue
    catalogue: Catalogue
    quotas: Quotas
    measures: Measures
    options: QueueOptions


class Acquirer:
    """Works on one batch with some threads."""

    def __init__(
        self,
        desk: Desk,
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
        self._desk, self._get, self._guard = desk, get, guard
        self._worker, self._max_seconds, self._grace_s = worker, max_seconds, grace_s
        self._tell, self._show, self._clock = tell, show, clock
        self._leases = Leases(desk.queue, desk.options, guard, clock)
        self._report = Acquisition()
        self._lock, self._door, self._has_room = threading.Lock(), threading.Lock(), threading.Event()
        self._broken: BaseException | None = None

    def run(self, batch: str) -> Acquisition:
        """Until nothing of the batch can be taken soon. An interrupt gives back what is under way."""
        due = self._desk.queue.due(batch, self._clock() + PATIENCE_S)
        # Threads by their ends: before Python 3.13 an interrupted join takes a thread for ended.
        ends: list[threading.Event] = []
        with self._leases:
            try:
                for number in range(min(self._desk.options.max_workers, due)):
                    end, name = threading.Event(), f"ingest-acquire-{number}"
                    threading.Thread(target=self._work, args=(batch, end), name=name, daemon=True).start()
                    ends.append(end)
                for end in ends:
                    while not end.wait(_SHOW_S):
                        self._show(self._report)
            except BaseException:
                # They stop at the next piece they receive, or at the latest when the grace is over.
                self.stop()
                until_s = time.monotonic() + self._grace_s
                for end in ends:
                    end.wait(max(0.0, until_s - time.monotonic()))
                self._leases.give_back()
                raise
        if self._broken is not None:
            raise self._broken
        self._desk.measures.depth(self._desk.queue.stats(self._clock()))
        return self._report

    def stop(self) -> None:
        """Begin nothing more, and give back what is under way; from any thread."""
        self._leases.stopping.set()
        self._has_room.set()

    def _work(self, batch: str, end: threading.Event) -> None:
        """A ledger that cannot be reached ends the acquisition: nothing could be recorded."""

        def take_all() -> None:
            while (lease := self._next(batch)) is not None:
                self._take(lease)
                self._desk.measures.store()

        try:
            error = self._guard(take_all)
            if error is not None:
                self._broken = error
                self.stop()
        finally:
            end.set()

    def _next(self, batch: str) -> Lease | None:
        """The next lease, once a cap or a short wait allows one; None when there is none to wait for.

        One thread at a time looks, and the others wait behind it: the ledger has better things to do.
        """
        look_s = _FIRST_LOOK_S
        with self._door:
            while not self._leases.stopping.is_set():
                self._has_room.clear()
                found = self._desk.queue.lease(self._worker, 1, self._clock(), batch=batch)
                if found:
                    return found[0]
                if not self._desk.queue.due(batch, self._clock() + PATIENCE_S):
                    return None
                self._has_room.wait(look_s)
                look_s = min(2 * look_s, _LAST_LOOK_S)
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

            began_s = time.monotonic()
            came: list[Acquired | NotModified] = []
            error = self._guard(lambda: came.append(self._get(lease.artifact, self._max_seconds, on_bytes)))
            if not isinstance(error, HostResting | Stopped):
                seconds = time.monotonic() - began_s
                self._desk.measures.fetched(received_bytes, seconds, lease.artifact.resolver)
            with self._lock:
                self._report.size_bytes += received_bytes
            if error is not None:
                self._failed(lease, error)
            elif isinstance(found := came[0], NotModified):
                ended = self._desk.catalogue.unchanged(lease, found.etag, found.last_modified, self._clock())
                self._count(lease, ended)
            else:
                self._count(lease, self._desk.catalogue.done(lease, found, self._clock()))
        self._has_room.set()

    def _has_quota(self, lease: Lease) -> bool:
        """True with a token of the resolver's quota in hand; else the artifact is given back for later."""
        resolver = lease.artifact.resolver
        while (wait_s := self._desk.quotas.take(resolver, self._clock())) > 0:
            self._desk.measures.throttled(resolver)
            if wait_s > PATIENCE_S or self._leases.stopping.wait(wait_s):
                self._give_back(lease, wait_s)
                return False
        return True

    def _failed(self, lease: Lease, error: BaseException) -> None:
        if isinstance(error, LeaseLost):
            self._count(lease, None)
        elif isinstance(error, Stopped):
            self._give_back(lease, 0.0)
        elif isinstance(error, HostResting):
            self._desk.measures.throttled(lease.artifact.resolver)
            self._give_back(lease, float(error.detail["retry_after_s"]))
        elif isinstance(error, NotFound):
            self._count(lease, self._desk.catalogue.gone(lease, Failure.of(error), self._clock()))
        else:
            wait_s = error.detail.get("retry_after_s") if isinstance(error, FetchError) else None
            is_held = self._desk.queue.fail_and_retry(lease.token, Failure.of(error), self._clock(), wait_s)
            self._count(lease, self._desk.queue.get(lease.artifact.artifact_id) if is_held else None)

    def _give_back(self, lease: Lease, wait_s: float) -> None:
        self._desk.queue.release(lease.token, self._clock(), wait_s)
        self._add("given back")

    def _count(self, lease: Lease, ended: Artifact | None) -> None:
        """How it ended, once it is recorded; a lease that was lost is somebody else's to count."""
        measures, resolver = self._desk.measures, lease.artifact.resolver
        if ended is None:
            self._add("lost")
            return
        if ended.last_error is not None:
            self._tell(f"{ended.artifact_id}: {ended.last_error.message}")
        if ended.state in FINAL_STATES:
            self._add(ended.state)
            measures.completed(ended.state, resolver)
        else:  # back in the line; somebody else may even have it by now
            self._add("to be retried")
            measures.retried(resolver)

    def _add(self, end: str) -> None:
        with self._lock:
            self._report.ended[end] += 1


# Where the bytes of an artifact come from: its URL, or its file.


def copy_file(
    path: Path, blobs: BlobStore, sniff: Sniffer, on_bytes: Callable[[int], None]
) -> tuple[Blob, str]:
    """The file's bytes in the store, where nobody can change them later, and its media type by name and
    first bytes."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise NotAFile(f"{path} is not a regular file; queue files, or watch the folder.")
        head = b""
        with path.open("rb") as stream, blobs.download(f"file {path}") as download:
            download.restart(None)
            while block := stream.read(_BLOCK):
                head = head or block[:HEAD_BYTES]
                download.write(block)
                on_bytes(len(block))
            return download.finish(), sniff(path.name, head)
    except FileNotFoundError:
        raise DocumentMissing(f"{path} is not there; correct the path or bring the file back.") from None
    except OSError as error:
        raise DocumentUnreadable(
            f"{path} cannot be copied ({error.strerror}); check permissions and free space."
        ) from None


@dataclass(frozen=True, slots=True)
class GetBytes:
    """Fetches or copies into the store; an artifact that was fetched before is asked for conditionally."""

    fetcher: Fetcher
    blobs: BlobStore
    sniff: Sniffer

    def __call__(
        self, artifact: Artifact, max_seconds: float, on_bytes: Callable[[int], None]
    ) -> Acquired | NotModified:
        """The bytes, or word that they are still the same."""
        if artifact.url is None:
            blob, mime = copy_file(Path(artifact.path or ""), self.blobs, self.sniff, on_bytes)
            return Acquired(blob, mime)
        known = Validators(artifact.etag, artifact.last_modified, artifact.content_hash)
        came = self.fetcher.fetch(
            artifact.url,
            known if artifact.content_hash else None,
            max_seconds=max_seconds,
            on_bytes=on_bytes,
        )
        if isinstance(came, NotModified):
            return came
        return Acquired(
            Blob(came.path, came.content_hash, came.size_bytes, came.is_new),
            came.media_type,
            came.etag,
            came.last_modified,
            {
                "final_url": came.final_url,
                "declared_type": came.declared_type,
                "charset": came.charset,
                "resumed_from_bytes": came.resumed_from_bytes,
            },
        )
