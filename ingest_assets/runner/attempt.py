"""One attempt at one item, made where the item runs; and the one place that catches whatever others raise."""

import contextlib
import functools
import itertools
import json
import pickle
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ingest_assets.core.errors import ContractBroken, StageError
from ingest_assets.core.identity import sha256_text
from ingest_assets.core.items import ItemContext, Result, WorkItem
from ingest_assets.core.ports import Worker
from ingest_assets.runner.schedule import Ticket

T = TypeVar("T")
MAX_MESSAGE_CHARS = 4000  # some native libraries put whole stack traces into a message
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def caught(
    call: Callable[[], T], kinds: tuple[type[BaseException], ...] = (Exception,)
) -> tuple[T | None, BaseException | None]:
    """The call's value, or what it raised. Interrupts are not `Exception`s and pass."""
    try:
        return call(), None
    except kinds as error:  # a stage or a hook is foreign code: what it raises must not end the run
        return None, error


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt came to. Plain values only: errors that do not pickle are already records here.

    `counts` are the result's; of an attempt that failed, what it had counted by then: it may have been paid.
    """

    result: Result | None
    error: StageError | None
    started_epoch_s: float
    ended_epoch_s: float
    cpu_s: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)


def queue_s(ticket: Ticket, attempt: Attempt) -> float:
    """From ready to started; two clocks may differ by a hair, so never negative."""
    return max(0.0, attempt.started_epoch_s - ticket.waiting_since_epoch_s)


def exec_s(attempt: Attempt) -> float:
    """How long the attempt took where it ran."""
    return max(0.0, attempt.ended_epoch_s - attempt.started_epoch_s)


@dataclass(frozen=True)
class Attempting:
    """The call a backend makes.

    It crosses to another process with its worker still pickled, so that a worker whose modules do not import
    there fails as an item does, with the import's own message.
    """

    stage: str
    worker: Worker
    timeout_s: float = 0.0

    def __call__(self, item: WorkItem, context: ItemContext) -> Attempt:
        """Run the worker once, with its deadline counted from now.

        Never raises for an `Exception` or a `sys.exit` of the worker.
        """
        if self.timeout_s > 0:
            context = replace(context, deadline_epoch_s=time.time() + self.timeout_s)
        # Alone in its process, an item also answers for the native threads it starts.
        is_alone = threading.current_thread() is threading.main_thread()
        cpu_clock = time.process_time if is_alone else time.thread_time
        started, cpu = time.time(), cpu_clock()
        result, error = caught(lambda: _checked(self.worker(item, context)), (Exception, SystemExit))
        failure = None if error is None else described(error, stage=self.stage, item_id=item.item_id)
        counts = dict(context.counts if result is None else result.counts)
        return Attempt(result, failure, started, time.time(), cpu_clock() - cpu, counts)

    def __reduce__(self) -> tuple[Any, ...]:
        return Attempting, (self.stage, self._frozen, self.timeout_s)

    @functools.cached_property
    def _frozen(self) -> "FrozenWorker":
        return FrozenWorker(pickle.dumps(self.worker))


@dataclass(frozen=True, slots=True)
class FrozenWorker:
    """A pickled worker that thaws at its first item and stays warm for the next ones."""

    blob: bytes

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        """Run the worker that is inside."""
        return _thawed(self.blob)(item, context)


@functools.lru_cache(maxsize=8)
def _thawed(blob: bytes) -> Worker:
    worker: Worker = pickle.loads(blob)
    return worker


def described(error: BaseException, *, stage: str, item_id: str) -> StageError:
    """The error as a record that pickles, is JSON, and reads the same on every run."""
    record, problem = caught(lambda: StageError.of(error, stage=stage, item_id=item_id))
    if record is None:
        record, _ = caught(lambda: _plain(error, stage, item_id))
    if record is None:
        record = _plain(
            RuntimeError(f"{type(error).__name__}, whose text raised {problem!r}"), stage, item_id
        )
    detail, _ = caught(lambda: json.loads(json.dumps(record.detail, default=repr, sort_keys=True)))
    return record.model_copy(update={"message": _text(record.message), "detail": detail or {}})


def _plain(error: BaseException, stage: str, item_id: str) -> StageError:
    """For messages and ids that are not Unicode text, such as undecodable file names."""
    return StageError(
        stage=stage,
        item_id=printable(item_id),
        category=getattr(error, "category", "unknown"),
        code=getattr(error, "code", "E_UNKNOWN"),
        message=_text(str(error)),
        retryable=getattr(error, "retryable", False),
    )


def _text(message: str) -> str:
    """One line: so records are listed, and told apart."""
    return _ADDRESS.sub("", " ".join(printable(message).split()))[:MAX_MESSAGE_CHARS]


def printable(text: str) -> str:
    """As Unicode text, which an undecodable file name is not."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _checked(result: object) -> Result:
    """Results must be able to cross processes, also when this time they do not have to."""
    if not isinstance(result, Result):
        raise ContractBroken(f"the worker returned {type(result).__name__}, not a Result")
    _, error = caught(lambda: pickle.loads(pickle.dumps(result)))
    if error is not None:
        raise ContractBroken(f"the worker's result does not pickle: {type(error).__name__}: {error}")
    return result


# Where a forced run puts what it would overwrite.


class Quarantine:
    """Moves an item's existing outputs into a numbered folder of its own; never overwrites earlier ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, item: WorkItem) -> None:
        """Move what exists; an item without outputs leaves no trace. `OSError` when it cannot be moved."""
        existing = [path for path in map(Path, item.output_paths) if path.exists()]
        if not existing:
            return
        room = _new_room(self._folder / sha256_text(item.item_id)[:16])
        origin = {"item_id": item.item_id, "outputs": [str(path) for path in existing]}
        (room / "origin.json").write_text(json.dumps(origin, indent=2), encoding="utf-8")
        for number, path in enumerate(existing):
            shutil.move(path, room / f"{number:02d}-{path.name}")


def _new_room(folder: Path) -> Path:
    """The next number that is free; `mkdir` is atomic, so two runs never share a room."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1 + len(list(folder.iterdir()))):
        with contextlib.suppress(FileExistsError):
            (folder / f"{number:04d}").mkdir()
            break
    return folder / f"{number:04d}"
