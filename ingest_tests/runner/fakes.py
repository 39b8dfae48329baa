"""Plans, clocks and listeners for tests."""

import queue
from collections.abc import Iterable
from typing import Any

from ingest_assets.core.errors import StageError
from ingest_assets.core.items import Plan, Record, Result, StageOutcome, WorkItem


def plan_of(*names: str, **fields: Any) -> Plan:
    """Return a plan of new items, numbered so that ids are unique: `ok` becomes `ok-0`."""
    items = [WorkItem(f"{name}-{number}", fingerprint="f", **fields) for number, name in enumerate(names)]
    return Plan("stage", items, total=len(items))


def plan_from(items: Iterable[WorkItem]) -> Plan:
    """Return a plan without a total."""
    return Plan("stage", items)


def satisfied(name: str) -> WorkItem:
    """Return an item whose stored rows are current."""
    return WorkItem(name, fingerprint="f", record=Record("f", 1))


def known_to_fail(name: str, *, retryable: bool = False) -> WorkItem:
    """Return an item that failed before."""
    error = StageError(
        stage="stage", item_id=name, category="input", code="E", message="broken", retryable=retryable
    )
    return WorkItem(name, fingerprint="f", known_failure=error)


def adds_up(outcome: StageOutcome) -> bool:
    """True if `scheduled = succeeded + failed + cancelled`, and no number is negative."""
    ended = outcome.succeeded + outcome.failed + outcome.cancelled
    return outcome.scheduled == ended and outcome.cancelled >= 0


class FastClock:
    """A clock without real waits: if nothing arrives, its time advances by the timeout."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.waited: list[float] = []

    def epoch_s(self) -> float:
        """Return the same value as `monotonic_s`."""
        return self.now_s

    def monotonic_s(self) -> float:
        """Return a time that advances only in `wait`."""
        return self.now_s

    def wait(self, arrivals: "queue.SimpleQueue[Any]", timeout_s: float | None) -> Any:
        """Wait a moment for real threads, then advance the time."""
        try:
            return arrivals.get(timeout=0.05) if timeout_s else arrivals.get_nowait()
        except queue.Empty:
            if timeout_s:
                self.waited.append(timeout_s)
                self.now_s += timeout_s
            return None


class Recording:
    """Hooks and progress that record their calls, and raise for the calls in `raising`."""

    def __init__(self, raising: Iterable[str] = ()) -> None:
        self.calls: list[str] = []
        self.outcomes: list[StageOutcome] = []
        self._raising = set(raising)

    def _record(self, call: str, detail: str = "") -> None:
        self.calls.append(f"{call} {detail}".strip())
        if call in self._raising:
            raise RuntimeError(f"{call} is broken")

    def before_stage(self, stage: str) -> None:
        """Record the call."""
        self._record("before_stage")

    def after_stage(self, outcome: StageOutcome) -> None:
        """Record the call."""
        self.outcomes.append(outcome)
        self._record("after_stage")

    def before_item(self, item: WorkItem) -> None:
        """Record the call."""
        self._record("before_item", item.item_id)

    def after_item(self, item: WorkItem, result: Result | None, error: StageError | None) -> None:
        """Record the call."""
        self._record("after_item", f"{item.item_id} {'done' if error is None else error.code}")

    def start(self, stage: str, total: int | None) -> None:
        """Record the call."""
        self._record("start")

    def update(self, done: int, succeeded: int, skipped: int, failed: int) -> None:
        """Record the call."""
        self._record("update", f"{done} {succeeded} {skipped} {failed}")

    def finish(self, outcome: StageOutcome) -> None:
        """Record the call."""
        self._record("finish")
