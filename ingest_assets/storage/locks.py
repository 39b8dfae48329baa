"""Locks between processes that vanish with the process that held them."""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path


class FileLock:
    """An advisory lock on a file, shared or exclusive; closing it (or dying) lets go."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self._path = path
        self._mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Wait until the lock is ours."""
        self._lock(self._mode)

    def try_acquire(self) -> bool:
        """Take the lock if nobody holds it."""
        try:
            self._lock(self._mode | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Let go; doing so twice is harmless."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _lock(self, mode: int) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, mode)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor


class HeldLocks:
    """Several locks taken in the order given; readers share, the writer is alone."""

    def __init__(self, shared: Sequence[Path], exclusive: Sequence[Path]) -> None:
        self._locks = [FileLock(p, shared=True) for p in shared] + [FileLock(p) for p in exclusive]

    def acquire(self) -> None:
        """Take all; on any failure none stays held."""
        try:
            for lock in self._locks:
                lock.acquire()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let go of all."""
        for lock in reversed(self._locks):
            lock.release()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock for the block."""
    lock = FileLock(path)
    lock.acquire()
    try:
        yield
    finally:
        lock.release()
