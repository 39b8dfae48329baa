"""Whether processes are gone."""

import time
from collections.abc import Iterable

import psutil


def is_running(pid: int) -> bool:
    """A zombie has ended; only nobody has asked how."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def all_gone(pids: Iterable[int], within_s: float) -> bool:
    """True as soon as none of them runs; False when the time is over."""
    give_up, left = time.monotonic() + within_s, list(pids)
    while any(is_running(pid) for pid in left):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True
