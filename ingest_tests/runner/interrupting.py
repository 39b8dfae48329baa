"""Helpers that interrupt a stage at a given moment and check its records afterwards."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ingest_assets.backends import ProcessBackend, ThreadBackend
from ingest_assets.core.items import Plan, Result, StageOutcome, WorkItem
from ingest_assets.core.ports import ExecutionBackend
from ingest_assets.runner import Manifest, ManifestRow, RunSpec, read_manifest, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.fakes import Recording, adds_up
from ingest_tests.runner.workers import Writing


class Interrupted(BaseException):
    """The exception of an orchestrator that interrupts the main thread."""


def paced(item: WorkItem, context: object) -> Result:
    """Write the item's output after `meta["seconds"]`."""
    return Writing(float(item.meta.get("seconds", 0)))(item, context)


def writing(folder: Path, **seconds: float) -> Plan:
    """Return a plan of items that take this many seconds each."""
    items = [
        WorkItem(name, "f", output_paths=(str(folder / name),), meta={"seconds": duration})
        for name, duration in seconds.items()
    ]
    return Plan("stage", items, len(items))


def backend_of(kind: str) -> ThreadBackend | ProcessBackend:
    """Return a backend of that kind with two workers."""
    return ThreadBackend(2) if kind == "threads" else ProcessBackend(2)


@contextmanager
def pressed(
    when: Callable[[], bool], after_s: Sequence[float] = (0.1,), number: int = signal.SIGINT
) -> Iterator[None]:
    """Send this process signals, each `after_s` seconds after `when` becomes true."""

    def press() -> None:
        give_up = time.monotonic() + 30
        while not when() and time.monotonic() < give_up:
            time.sleep(0.005)
        true_since = time.monotonic()
        for delay_s in after_s:
            time.sleep(max(0.0, true_since + delay_s - time.monotonic()))
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    yield
    thread.join()


@contextmanager
def handled(number: int, error: type[BaseException]) -> Iterator[None]:
    """Install a handler that raises `error` for a signal, as a host does."""

    def raise_it(_number: int, _frame: object) -> None:
        raise error

    before = signal.signal(number, raise_it)
    yield
    signal.signal(number, before)


def interrupted(
    plan: Plan, options: StageOptions, backend: ExecutionBackend, folder: Path, worker=paced
) -> tuple[StageOutcome, dict[str, ManifestRow], float]:
    """Run a stage that is interrupted; return the outcome, the last row of each item and the seconds."""
    hooks, manifest, began = Recording(), Manifest(folder / "manifest.jsonl"), time.monotonic()
    with pytest.raises((KeyboardInterrupt, Interrupted)):
        run_stage(RunSpec(plan, worker, options, hooks, backend=backend, manifest=manifest))
    took_s = time.monotonic() - began
    (outcome,) = hooks.outcomes
    rows = {row.item_id: row for row in read_manifest(manifest.path)}
    require_agreement(outcome, rows)
    return outcome, rows, took_s


def require_agreement(outcome: StageOutcome, rows: dict[str, ManifestRow]) -> None:
    """Check that the manifest and the outcome have the same numbers."""
    counted = {"done": outcome.succeeded, "failed": outcome.failed, "cancelled": outcome.cancelled}
    assert adds_up(outcome)
    assert Counter(row.status for row in rows.values()) == Counter(counted)
