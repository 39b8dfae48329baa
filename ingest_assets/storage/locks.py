"""File locks between processes, released when the process ends."""

import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path


class FileLock:
    """An advisory lock on a file, shared or exclusive, released at the latest when the process ends."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        self.path = path
        self._mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Wait for the lock."""
        self._lock(self._mode)

    def try_acquire(self) -> bool:
        """Take the lock if it is free; False if not."""
        try:
            self._lock(self._mode | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release the lock. Safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _lock(self, mode: int) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, mode)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor


class LockGroup:
    """Several locks, taken in this order: first the shared ones, then the exclusive ones."""

    def __init__(self, shared: Sequence[Path], exclusive: Sequence[Path]) -> None:
        self._locks = [FileLock(p, shared=True) for p in shared] + [FileLock(p) for p in exclusive]

    def acquire(self, on_wait: Callable[[Path], None] = lambda _path: None) -> None:
        """Take all locks; call `on_wait` for each that is busy. On failure, release all of them."""
        try:
            for lock in self._locks:
                if not lock.try_acquire():
                    on_wait(lock.path)
                    lock.acquire()
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release all locks."""
        for lock in reversed(self._locks):
            lock.release()
