"""Check whether processes have ended."""

import time
from collections.abc import Iterable

import psutil


def is_running(pid: int) -> bool:
    """True if the process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def all_gone(pids: Iterable[int], within_s: float) -> bool:
    """Wait until no process runs; False after the timeout."""
    give_up, left = time.monotonic() + within_s, list(pids)
    while any(is_running(pid) for pid in left):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True
