"""The one door for writes: a file is there whole, or it is as it was."""

import contextlib
import os
import queue
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

# Files reach the disk while their writer goes on: for results of which another may come any moment.
#
# A flush takes milliseconds in which a worker could compute. Until it is done, a file survives the end of
# every process, but not that of the machine; a machine that dies costs at most the last few.
MOST_WAITING = 16  # files; then writers wait, for a disk that is slower than they are


def flush(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Flusher:
    """A thread of this process, and its first error, which the next writer gets."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._error: OSError | None = None
        self._waiting: queue.Queue[Path] = queue.Queue(MOST_WAITING)
        threading.Thread(target=self._run, name="ingest-flush", daemon=True).start()

    def add(self, path: Path) -> None:
        self._waiting.put(path)
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        while True:
            paths = [self._waiting.get()]
            while not self._waiting.empty():  # what came meanwhile goes together: each folder is flushed once
                paths.append(self._waiting.get_nowait())
            for path in (*paths, *dict.fromkeys(path.parent for path in paths)):
                try:
                    flush(path)
                except FileNotFoundError:
                    pass  # replaced or committed and cleared away: nobody needs it any more
                except OSError as error:
                    self._error = self._error or error


_starting = threading.Lock()
_flusher: _Flusher | None = None


def flush_soon(path: Path) -> None:
    """Have a file and its folder flushed; raises what an earlier flush of this process failed with."""
    global _flusher
    with _starting:
        if _flusher is None or _flusher.pid != os.getpid():  # a thread does not survive a fork
            _flusher = _Flusher()
        flusher = _flusher
    flusher.add(path)


@contextlib.contextmanager
def replacing(path: Path, *, waits: bool = True) -> Iterator[Path]:
    """Give a scratch path in the same folder; when the block ends well, it becomes `path` in one step.

    It is on the disk then, or soon after for a writer that does not wait.
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
            flush_soon(path)
    finally:
        scratch.unlink(missing_ok=True)


def sweep_scratch(path: Path) -> int:
    """Remove scratch files that a killed writer of `path` left behind; call it under that path's lock."""
    leftovers = list(path.parent.glob(f".{path.name}.*.tmp"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)
