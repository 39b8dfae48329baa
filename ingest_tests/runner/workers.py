"""Workers that behave, misbehave and die. At module level, so that processes can import them."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from ingest_assets.core.errors import ContractBroken, DocumentMissing
from ingest_assets.core.items import ItemContext, Result, WorkItem

_HELD: list[bytes] = []


class Unpicklable(Exception):
    """An error that holds a lock and needs two arguments: neither pickles nor unpickles."""

    def __init__(self, message: str, lock: object) -> None:
        super().__init__(message)
        self.lock = lock


def by_name(item: WorkItem, context: ItemContext) -> Result:
    """Does what the item's id says before its dash: `ok-1`, `fail-2`, `kill-3`."""
    return _DEEDS[item.item_id.split("-")[0]](item, context)


def _ok(item: WorkItem, context: ItemContext) -> Result:
    return Result(rows=1, counts={"pages": 2})


def _fail(item: WorkItem, context: ItemContext) -> Result:
    raise ContractBroken(f"{item.item_id} is no good", detail={"item": item.item_id})


def _missing(item: WorkItem, context: ItemContext) -> Result:
    raise DocumentMissing(f"{item.item_id} is not there")


def _mended(item: WorkItem, context: ItemContext) -> Result:
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
    """In C, with signals blocked and the interpreter locked: only SIGKILL helps."""
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
    """Holds 300 MiB until the process ends."""
    _HELD.append(b"x" * (300 * 1024 * 1024))
    time.sleep(0.5)  # long enough for who watches
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


_DEEDS = {name[1:]: deed for name, deed in list(globals().items()) if name[0] == "_" and callable(deed)}


def announced(item: WorkItem, context: ItemContext) -> Result:
    """As `by_name`, but first says in a file which process it runs in."""
    Path(item.output_paths[0]).with_suffix(".started").write_text(str(os.getpid()), encoding="utf-8")
    return by_name(item, context)


@dataclass(frozen=True, slots=True)
class Writing:
    """Writes the item's output after a while, and says when it starts."""

    seconds: float = 0.0

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        """One file per item."""
        output = Path(item.output_paths[0])
        output.with_suffix(".started").write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(self.seconds)
        output.write_text(f"new {item.item_id}", encoding="utf-8")
        return Result(rows=1, outputs=(str(output),))


class Unimportable:
    """Pickles here and does not unpickle anywhere."""

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        """Never reached in another process."""
        return Result(rows=1)

    def __reduce__(self) -> tuple[object, ...]:
        return _raise_import_error, ()


def _raise_import_error() -> None:
    raise ImportError("libGL.so.1: cannot open shared object file")
