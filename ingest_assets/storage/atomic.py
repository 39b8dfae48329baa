"""Atomic writes: a file is either replaced completely or unchanged."""

import contextlib
import os
import queue
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

# Staged parts are flushed in the background: a flush takes milliseconds that a worker can spend computing.
#
# Until the flush, a file survives the end of every process but not a power failure, which costs at most the
# last few files.
MAX_PENDING_FLUSHES = 16  # files; writers wait above this, because the disk is slower than they are


def flush(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Flusher:
    """A thread that flushes files. The next call of `add` raises its first error."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._error: OSError | None = None
        self._waiting: queue.Queue[Path] = queue.Queue(MAX_PENDING_FLUSHES)
        threading.Thread(target=self._run, name="ingest-flush", daemon=True).start()

    def add(self, path: Path) -> None:
        self._waiting.put(path)
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while True:
            paths = [self._waiting.get()]
            while not self._waiting.empty():  # take all that wait, so that each folder is flushed once
                paths.append(self._waiting.get_nowait())
            for path in (*paths, *dict.fromkeys(path.parent for path in paths)):
                try:
                    flush(path)
                except FileNotFoundError:
                    pass  # replaced, or committed and removed
                except OSError as error:
                    self._error = self._error or error


_starting = threading.Lock()
_flusher: _Flusher | None = None


def flush_later(path: Path) -> None:
    """Flush a file and its folder in the background; raise the error of an earlier flush, if there is one."""
    global _flusher
    with _starting:
        if _flusher is None or _flusher.pid != os.getpid():  # a thread does not survive a fork
            _flusher = _Flusher()
        flusher = _flusher
    flusher.add(path)


@contextlib.contextmanager
def replacing(path: Path, *, waits: bool = True) -> Iterator[Path]:
    """Yield a scratch path in the same folder and rename it to `path` if the block succeeds.

    With `waits`, the file is on disk afterwards; otherwise it is flushed in the background.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield scratch
        if waits:
            flush(scratch)
        scratch.replace(path)
        if waits:
            flush(path.parent)
        else:
            flush_later(path)
    finally:
        scratch.unlink(missing_ok=True)


def sweep_scratch(path: Path) -> int:
    """Remove the scratch files of killed writers of `path`. The caller holds the lock of `path`."""
    leftovers = list(path.parent.glob(f".{path.name}.*.tmp"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)
