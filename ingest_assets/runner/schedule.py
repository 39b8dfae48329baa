"""Which item runs next, which is retried, and when a stage stops."""

import bisect
import heapq
import math
import queue
import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ingest_assets.core.errors import StageError, WorkerLost
from ingest_assets.core.items import Plan, StageOutcome, Verdict, WorkItem
from ingest_assets.settings.execution import Schedule, StageOptions


@dataclass(eq=False, slots=True)
class Ticket:
    """An item that must run, with the number and times of its current attempt."""

    item: WorkItem
    plan_order: int
    attempt_no: int = 1
    losses: int = 0
    waiting_since_epoch_s: float = 0.0
    submitted_epoch_s: float = 0.0


class ReadyQueue:
    """Tickets that can start now: retries first, then in plan order, or (`sjf`) smallest and largest first.

    With `sjf` one worker takes the smallest items and the others the largest. With 2 to 8 workers this took
    0.72 to 0.94 of the wall time of plan order and 0.80 to 1.12 of its mean completion time. Largest first
    took 0.72 to 0.99 and 1.4 to 2.4, smallest first 0.97 to 1.17 and 0.37 to 0.56 (see `make bench`).
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._waiting: list[tuple[float, int, Ticket]] = []
        self._smallest: Ticket | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, ticket: Ticket) -> None:
        """Add a ticket; retries go first."""
        cost = ticket.item.cost_hint if self._schedule == "sjf" else 0.0
        first = -math.inf if ticket.attempt_no > 1 else cost
        bisect.insort(self._waiting, (first, ticket.plan_order, ticket))

    def pop(self) -> Ticket:
        """Remove and return the next ticket to start; of equal costs, the first in the plan."""
        takes_smallest = self._smallest is None or self._waiting[0][0] == -math.inf
        index = 0 if takes_smallest else bisect.bisect_left(self._waiting, self._waiting[-1][:1])
        ticket = self._waiting.pop(index)[2]
        self._smallest = self._smallest or ticket
        return ticket

    def release(self, ticket: Ticket) -> None:
        """Note that the ticket's worker is free again."""
        if self._smallest is ticket:
            self._smallest = None


class RetryQueue:
    """Tickets that wait for a retry, ordered by due time."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Ticket]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, due_s: float, ticket: Ticket) -> None:
        """Add a ticket that is due at this time of the monotonic clock."""
        heapq.heappush(self._heap, (due_s, ticket.plan_order, ticket))

    def due(self, now_s: float) -> list[Ticket]:
        """Remove and return the tickets that are due."""
        tickets = []
        while self._heap and self._heap[0][0] <= now_s:
            tickets.append(heapq.heappop(self._heap)[2])
        return tickets

    def next_due_s(self) -> float | None:
        """Return when the next ticket is due; None if none waits."""
        return self._heap[0][0] if self._heap else None


# When an item is retried, and after which wait.

JITTER_SHARE = 0.25
MAX_LOSSES = 5  # nodes of a cluster can disappear, but an item can also be the cause


def is_loss(error: StageError) -> bool:
    """True if the item's worker or machine was lost, which does not count as one of the item's retries."""
    return error.code == WorkerLost.code


def should_retry(error: StageError, attempt_no: int, losses: int, options: StageOptions) -> bool:
    """True if the error is retryable and attempts are left. `losses` includes this attempt."""
    if is_loss(error):
        return losses <= MAX_LOSSES
    return error.retryable and attempt_no - losses <= options.retries


def backoff_s(attempt_no: int, options: StageOptions, rng: random.Random) -> float:
    """Return `base * 2^(n-1)` after the n-th attempt, plus up to 25 % of jitter."""
    return float(options.retry_backoff_s * 2 ** (attempt_no - 1) * (1 + JITTER_SHARE * rng.random()))


# When a stage stops because of failures, and the reason.

MIN_FINISHED_FOR_SHARE = 20  # the share of fewer items is too uncertain


def reason_to_stop(options: StageOptions, succeeded: int, failed: int) -> str | None:
    """Return why the stage stops, with the numbers; None if it continues."""
    if failed == 0:
        return None
    finished = succeeded + failed
    if options.cancel_on_first_failure:
        return f"stopped at the first failure, after {finished} finished items"
    if options.error_budget is not None and failed > options.error_budget:
        budget = options.error_budget
        failing = f"{failed} of {finished} finished items failed"
        return f"stopped after {failing}: the error budget is {budget} (error_budget)"
    share = options.max_failed_share
    if share is not None and finished >= MIN_FINISHED_FOR_SHARE and failed / finished > share:
        failing = f"{failed} of {finished} finished items failed ({failed / finished:.0%})"
        return f"stopped because {failing}: the limit is {share:.0%} (max_failed_share)"
    return None


def too_many_abandoned(abandoned: int, workers: int, timeout_s: float) -> str | None:
    """Return why the stage stops if too many threads are abandoned; they hold memory and perhaps locks."""
    limit = 2 * workers + 8
    if abandoned <= limit:
        return None
    blocked = f"{abandoned} threads are blocked by items that exceeded {timeout_s:g} s"
    return f"stopped because {blocked}: the limit is {limit}"


# The clock of the coordinator, which tests replace.

T = TypeVar("T")


class Clock(Protocol):
    """Times, and a wait. Tests use a clock that skips the waiting."""

    def epoch_s(self) -> float: ...
    def monotonic_s(self) -> float: ...
    def wait(self, arrivals: "queue.SimpleQueue[T]", timeout_s: float | None) -> T | None: ...


class SystemClock:
    """The system clock. A wait ends at the first arrival, at the timeout or at a signal."""

    def epoch_s(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def monotonic_s(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()

    def wait(self, arrivals: "queue.SimpleQueue[T]", timeout_s: float | None) -> T | None:
        """Return the next arrival; None after `timeout_s`."""
        try:
            return arrivals.get(block=timeout_s != 0, timeout=timeout_s or None)
        except queue.Empty:
            return None


# Which items of a plan must run.


def verdict_of(item: WorkItem, options: StageOptions) -> Verdict:
    """Return whether an item runs. Current items and permanent failures are skipped, except with `force` or
    without `resume`. Items on hold never run: only other items were selected for a retry.
    """
    if item.on_hold:
        return "skip" if item.satisfies() else "known_failure"
    if options.force or not options.resume:
        return "run"
    if item.satisfies():
        return "skip"
    return "known_failure" if item.is_known_to_fail() else "run"


def dry_run(plan: Plan, options: StageOptions, workers: int, workers_reason: str) -> StageOutcome:
    """Return the verdict of each item without running any."""
    verdicts = {item.item_id: verdict_of(item, options) for item in plan.items}
    counts = Counter(verdicts.values())
    return StageOutcome(
        stage=plan.stage,
        policy=options.policy,
        workers=workers,
        workers_reason=workers_reason,
        skipped=counts["skip"] + counts["known_failure"],
        known_failures=counts["known_failure"],
        verdicts=verdicts,
    )
