"""Workers that succeed, fail, hang and crash. At module level, so that processes can import them."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ingest_assets.core.errors import ContractBroken, DocumentMissing
from ingest_assets.core.items import ItemContext, Result, WorkItem

_HELD: list[bytes] = []


class Unpicklable(Exception):
    """An error with a lock and two required arguments, which can be neither pickled nor unpickled."""

    def __init__(self, message: str, lock: object) -> None:
        super().__init__(message)
        self.lock = lock


def by_name(item: WorkItem, context: ItemContext) -> Result:
    """Run the action that the item's id names before its dash: `ok-1`, `fail-2`, `kill-3`."""
    return _ACTIONS[item.item_id.split("-")[0]](item, context)


def job(item_id: str) -> Callable[[], Result]:
    """Return `by_name` for an item, as work for a backend."""
    return partial(by_name, WorkItem(item_id, "f"), ItemContext())


def _ok(item: WorkItem, context: ItemContext) -> Result:
    return Result(rows=1, counts={"pages": 2})


def _fail(item: WorkItem, context: ItemContext) -> Result:
    raise ContractBroken(f"{item.item_id} is no good", detail={"item": item.item_id})


def _missing(item: WorkItem, context: ItemContext) -> Result:
    raise DocumentMissing(f"{item.item_id} is not there")


def _recovers(item: WorkItem, context: ItemContext) -> Result:
    if context.attempt_no == 1:
        raise DocumentMissing(f"{item.item_id} is not there yet")
    return Result(rows=1)


def _paying(item: WorkItem, context: ItemContext) -> Result:
    context.count("tokens", 5)
    if context.attempt_no == 1:
        raise DocumentMissing(f"{item.item_id} is not there yet, and was paid for")
    return Result(rows=1, counts=dict(context.counts))


def _odd(item: WorkItem, context: ItemContext) -> Result:
    raise Unpicklable("held together by a lock", threading.Lock())


def _unknown(item: WorkItem, context: ItemContext) -> Result:
    raise ZeroDivisionError(f"cannot divide by <object at 0x{id(item):x}>")


def _leave(item: WorkItem, context: ItemContext) -> Result:
    sys.exit(3)


def _lock(item: WorkItem, context: ItemContext) -> Result:
    return Result.model_construct(rows=1, outputs=(threading.Lock(),), counts={}, warnings=())


def _none(item: WorkItem, context: ItemContext) -> Result:
    return None  # type: ignore[return-value]


def _print(item: WorkItem, context: ItemContext) -> Result:
    sys.stdout.write("a worker prints\n")
    sys.stdout.flush()
    os.write(1, b"and its libraries too\n")
    return Result(rows=1)


def _sleep(item: WorkItem, context: ItemContext) -> Result:
    time.sleep(float(item.meta.get("seconds", 60)))
    return Result(rows=1)


def _stuck(item: WorkItem, context: ItemContext) -> Result:
    """Sleep in C with all signals blocked and the GIL held; only SIGKILL ends it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(60)
    return Result(rows=1)


def _kill(item: WorkItem, context: ItemContext) -> Result:
    os.kill(os.getpid(), signal.SIGKILL)
    return Result(rows=1)


def _exit0(item: WorkItem, context: ItemContext) -> Result:
    os._exit(0)


def _exit7(item: WorkItem, context: ItemContext) -> Result:
    os._exit(7)


def _crash(item: WorkItem, context: ItemContext) -> Result:
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)
    return Result(rows=1)


def _close(item: WorkItem, context: ItemContext) -> Result:
    os.closerange(3, 256)
    return Result(rows=1)


def _fork(item: WorkItem, context: ItemContext) -> Result:
    os.fork()
    return Result(rows=1)


def _grow(item: WorkItem, context: ItemContext) -> Result:
    """Use 300 MiB until the process ends."""
    _HELD.append(b"x" * (300 * 1024 * 1024))
    time.sleep(0.5)  # long enough for the memory check
    return Result(rows=1, counts={"pid": os.getpid()})


def _start(item: WorkItem, context: ItemContext) -> Result:
    child = subprocess.Popen(["sleep", "60"])
    Path(item.meta["note"]).write_text(str(child.pid), encoding="utf-8")
    child.wait()
    return Result(rows=1)


def _pid(item: WorkItem, context: ItemContext) -> Result:
    return Result(rows=1, counts={"pid": os.getpid()})


def _env(item: WorkItem, context: ItemContext) -> Result:
    return Result(rows=1, counts={"value": int(os.environ.get("INGEST_TEST_VALUE", "0"))})


def _deadline(item: WorkItem, context: ItemContext) -> Result:
    assert context.deadline_epoch_s is not None
    left_s = context.deadline_epoch_s - time.time()
    return Result(rows=1, counts={"attempt": context.attempt_no, "left_s": round(left_s)})


_ACTIONS = {name[1:]: value for name, value in list(globals().items()) if name[0] == "_" and callable(value)}


def announced(item: WorkItem, context: ItemContext) -> Result:
    """Write the process id to a file, then run `by_name`."""
    Path(item.output_paths[0]).with_suffix(".started").write_text(str(os.getpid()), encoding="utf-8")
    return by_name(item, context)


@dataclass(frozen=True, slots=True)
class Writing:
    """Writes a file when it starts, and the item's output after `seconds`."""

    seconds: float = 0.0

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        """Write the files of one item."""
        output = Path(item.output_paths[0])
        output.with_suffix(".started").write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(self.seconds)
        output.write_text(f"new {item.item_id}", encoding="utf-8")
        return Result(rows=1, outputs=(str(output),))


class Unimportable:
    """Can be pickled here and cannot be unpickled anywhere."""

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        """Never called in another process."""
        return Result(rows=1)

    def __reduce__(self) -> tuple[object, ...]:
        return _raise_import_error, ()


def _raise_import_error() -> None:
    raise ImportError("libGL.so.1: cannot open shared object file")
