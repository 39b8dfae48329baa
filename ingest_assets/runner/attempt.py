"""One attempt at one item, on its worker. Exceptions of stage code are caught and classified here."""

import contextlib
import functools
import itertools
import json
import pickle
import re
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ingest_assets.core.errors import ContractBroken, StageError, caught
from ingest_assets.core.identity import sha256_text
from ingest_assets.core.items import ItemContext, Result, WorkItem
from ingest_assets.core.ports import Worker
from ingest_assets.runner.schedule import Ticket

MAX_MESSAGE_CHARS = 4000  # some native libraries put complete stack traces into a message
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of one attempt. Errors are stored as records, because some exceptions cannot be pickled.

    `counts` are those of the result; a failed attempt keeps its own, which can include paid tokens.
    """

    result: Result | None
    error: StageError | None
    started_epoch_s: float
    ended_epoch_s: float
    cpu_s: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)


def queue_s(ticket: Ticket, attempt: Attempt) -> float:
    """Return the seconds from ready to started, never negative although clocks can differ."""
    return max(0.0, attempt.started_epoch_s - ticket.waiting_since_epoch_s)


def exec_s(attempt: Attempt) -> float:
    """Return the seconds that the attempt took on its worker."""
    return max(0.0, attempt.ended_epoch_s - attempt.started_epoch_s)


@dataclass(frozen=True)
class AttemptCall:
    """The function that a backend calls for each attempt.

    The worker is pickled separately, so that a worker whose modules cannot be imported in another process
    fails only its item, with the import's error message.
    """

    stage: str
    worker: Worker
    timeout_s: float = 0.0

    def __call__(self, item: WorkItem, context: ItemContext) -> Attempt:
        """Run the worker once; the time limit starts now.

        Does not raise for an `Exception` or `SystemExit` of the worker.
        """
        if self.timeout_s > 0:
            context = replace(context, deadline_epoch_s=time.time() + self.timeout_s)
        # In its own process, an item's CPU time includes its native threads.
        is_alone = threading.current_thread() is threading.main_thread()
        cpu_clock = time.process_time if is_alone else time.thread_time
        started, cpu = time.time(), cpu_clock()
        result, error = caught(lambda: _checked(self.worker(item, context)), (Exception, SystemExit))
        failure = None if error is None else error_record(error, stage=self.stage, item_id=item.item_id)
        counts = dict(context.counts if result is None else result.counts)
        return Attempt(result, failure, started, time.time(), cpu_clock() - cpu, counts)

    def __reduce__(self) -> tuple[Any, ...]:
        return AttemptCall, (self.stage, self._pickled, self.timeout_s)

    @functools.cached_property
    def _pickled(self) -> "PickledWorker":
        return PickledWorker(pickle.dumps(self.worker))


@dataclass(frozen=True, slots=True)
class PickledWorker:
    """A pickled worker. It is unpickled for the first item and reused for the next ones."""

    blob: bytes

    def __call__(self, item: WorkItem, context: ItemContext) -> Result:
        """Run the worker."""
        return _unpickled(self.blob)(item, context)


@functools.lru_cache(maxsize=8)
def _unpickled(blob: bytes) -> Worker:
    worker: Worker = pickle.loads(blob)
    return worker


def error_record(error: BaseException, *, stage: str, item_id: str) -> StageError:
    """Return the error as a record that can be pickled, is valid JSON, and is the same in every run."""
    record, problem = caught(lambda: StageError.of(error, stage=stage, item_id=item_id))
    if record is None:
        record, _ = caught(lambda: _printable_record(error, stage, item_id))
    if record is None:
        unprintable = RuntimeError(f"{type(error).__name__}, whose text raised {problem!r}")
        record = _printable_record(unprintable, stage, item_id)
    detail, _ = caught(lambda: json.loads(json.dumps(record.detail, default=repr, sort_keys=True)))
    return record.model_copy(update={"message": _one_line(record.message), "detail": detail or {}})


def _printable_record(error: BaseException, stage: str, item_id: str) -> StageError:
    """Return the record of an error whose message or id is not valid Unicode, such as some file names."""
    return StageError(
        stage=stage,
        item_id=printable(item_id),
        category=getattr(error, "category", "unknown"),
        code=getattr(error, "code", "E_UNKNOWN"),
        message=_one_line(str(error)),
        retryable=getattr(error, "retryable", False),
    )


def _one_line(message: str) -> str:
    """Return the message in one line without memory addresses, which differ between runs."""
    return _ADDRESS.sub("", " ".join(printable(message).split()))[:MAX_MESSAGE_CHARS]


def printable(text: str) -> str:
    """Escape lone surrogates, as in file names that are not valid UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _checked(result: object) -> Result:
    """Return the result if it can be pickled, on every backend; otherwise raise `ContractBroken`."""
    if not isinstance(result, Result):
        raise ContractBroken(f"the worker returned {type(result).__name__}, not a Result")
    _, error = caught(lambda: pickle.loads(pickle.dumps(result)))
    if error is not None:
        raise ContractBroken(f"the worker's result cannot be pickled: {type(error).__name__}: {error}")
    return result


# Quarantine: a forced run keeps the outputs that it replaces.


class Quarantine:
    """Moves an item's existing outputs into a new numbered folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, item: WorkItem) -> None:
        """Move the outputs that exist; raise `OSError` if that fails."""
        existing = [path for path in map(Path, item.output_paths) if path.exists()]
        if not existing:
            return
        target = _new_folder(self._folder / sha256_text(item.item_id)[:16])
        origin = {"item_id": item.item_id, "outputs": [str(path) for path in existing]}
        (target / "origin.json").write_text(json.dumps(origin, indent=2), encoding="utf-8")
        for number, path in enumerate(existing):
            shutil.move(path, target / f"{number:02d}-{path.name}")


def _new_folder(folder: Path) -> Path:
    """Create a folder with the next free number. `mkdir` is atomic, so two runs never share one."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1 + len(list(folder.iterdir()))):
        with contextlib.suppress(FileExistsError):
            (folder / f"{number:04d}").mkdir()
            break
    return folder / f"{number:04d}"
