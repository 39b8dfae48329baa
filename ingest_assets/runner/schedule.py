"""What runs next: retries, the error budget, the order of work and when to stop."""

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
    """An item that must run: which attempt is next, and since when it waits for it."""

    item: WorkItem
    plan_order: int
    attempt_no: int = 1
    losses: int = 0
    waiting_since_epoch_s: float = 0.0
    submitted_epoch_s: float = 0.0


class ReadyQueue:
    """Tickets that may start now: retries, then plan order, or (`sjf`) the ends of the cost hints.

    Under `sjf` one worker takes the smallest that wait and the others the largest. On 2 to 8 workers it took
    0.72 to 0.94 of plan order's wall time at 0.80 to 1.12 of its mean completion time; the largest alone took
    0.72 to 0.99 at 1.4 to 2.4, the smallest alone 0.97 to 1.17 at 0.37 to 0.56 (`make bench` measures it).
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._waiting: list[tuple[float, int, Ticket]] = []
        self._small_one: Ticket | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, ticket: Ticket) -> None:
        """Retries go first: their turn has come before."""
        cost = ticket.item.cost_hint if self._schedule == "sjf" else 0.0
        first = -math.inf if ticket.attempt_no > 1 else cost
        bisect.insort(self._waiting, (first, ticket.plan_order, ticket))

    def pop(self) -> Ticket:
        """The next to start; of equal ones the first in the plan."""
        takes_small = self._small_one is None or self._waiting[0][0] == -math.inf
        place = 0 if takes_small else bisect.bisect_left(self._waiting, self._waiting[-1][:1])
        ticket = self._waiting.pop(place)[2]
        self._small_one = self._small_one or ticket
        return ticket

    def release(self, ticket: Ticket) -> None:
        """The worker that had it is free again."""
        if self._small_one is ticket:
            self._small_one = None


class RetryQueue:
    """Tickets that wait for their next attempt, by the moment it is due. Nobody sleeps for them."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Ticket]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, due_s: float, ticket: Ticket) -> None:
        """Due at a moment of the monotonic clock."""
        heapq.heappush(self._heap, (due_s, ticket.plan_order, ticket))

    def due(self, now_s: float) -> list[Ticket]:
        """Take out what may start now."""
        tickets = []
        while self._heap and self._heap[0][0] <= now_s:
            tickets.append(heapq.heappop(self._heap)[2])
        return tickets

    def next_due_s(self) -> float | None:
        """When the next one is due."""
        return self._heap[0][0] if self._heap else None


# When an item gets another try, and how long it waits for it.

JITTER_SHARE = 0.25
MAX_LOSSES = 5  # machines come and go on a cluster, but an item may also be what takes them down


def is_loss(error: StageError) -> bool:
    """True when the item's machine went away: that costs an attempt, never one of the item's retries."""
    return error.code == WorkerLost.code


def should_retry(error: StageError, attempt_no: int, losses: int, options: StageOptions) -> bool:
    """Only errors that say so, and only while attempts are left; `losses` counts this one too."""
    if is_loss(error):
        return losses <= MAX_LOSSES
    return error.retryable and attempt_no - losses <= options.retries


def backoff_s(attempt_no: int, options: StageOptions, rng: random.Random) -> float:
    """`base * 2^(n-1)` after the n-th attempt, plus up to 25 % so that retries do not march in step."""
    return float(options.retry_backoff_s * 2 ** (attempt_no - 1) * (1 + JITTER_SHARE * rng.random()))


# How many failures a stage may have before going on is a waste, and the words for it.

MIN_FINISHED_FOR_SHARE = 20  # one failure among the first three items says nothing of a share


def reason_to_stop(options: StageOptions, succeeded: int, failed: int) -> str | None:
    """Plain words naming the numbers, or nothing."""
    if failed == 0:
        return None
    finished = succeeded + failed
    if options.cancel_on_first_failure:
        return f"stopped at the first failure, as asked, after {finished} finished items"
    if options.error_budget is not None and failed > options.error_budget:
        budget = options.error_budget
        return f"stopped after {failed} of {finished} finished items failed: the error budget is {budget}"
    share = options.max_failed_share
    if share is not None and finished >= MIN_FINISHED_FOR_SHARE and failed / finished > share:
        failing = f"{failed} of {finished} finished items failed ({failed / finished:.0%})"
        return f"stopped because {failing}: at most {share:.0%} may"
    return None


def too_many_abandoned(abandoned: int, workers: int, timeout_s: float) -> str | None:
    """Each abandoned thread holds memory and perhaps a lock; past so many, the process cannot be trusted."""
    limit = 2 * workers + 8
    if abandoned <= limit:
        return None
    stuck = f"{abandoned} threads are stuck in items past their limit of {timeout_s:g} s"
    return f"stopped because {stuck}: at most {limit} may be"


# Time as an argument: what the coordinator reads and how it waits.

T = TypeVar("T")


class Clock(Protocol):
    """Two clocks and a wait, so that a test can let hours pass."""

    def epoch_s(self) -> float: ...
    def monotonic_s(self) -> float: ...
    def wait(self, arrivals: "queue.SimpleQueue[T]", timeout_s: float | None) -> T | None: ...


class SystemClock:
    """The machine's time. Waiting costs nothing and ends at the first arrival or at a signal."""

    def epoch_s(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def monotonic_s(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def wait(self, arrivals: "queue.SimpleQueue[T]", timeout_s: float | None) -> T | None:
        """The next arrival, or nothing after `timeout_s`."""
        try:
            return arrivals.get(block=timeout_s != 0, timeout=timeout_s or None)
        except queue.Empty:
            return None


# Which items of a plan must run, and why the others need not.


def verdict_of(item: WorkItem, options: StageOptions) -> Verdict:
    """Resume skips what is current and what is known to fail; `force` and `resume = false` run everything.

    What is on hold never runs: a person chose others. `app/plan.py` foretells the same for whole batches.
    """
    if item.on_hold:
        return "skip" if item.satisfies() else "known_failure"
    if options.force or not options.resume:
        return "run"
    if item.satisfies():
        return "skip"
    return "known_failure" if item.is_known_to_fail() else "run"


def dry_run(plan: Plan, options: StageOptions, workers: int, workers_reason: str) -> StageOutcome:
    """What would happen; touches nothing. Nothing is scheduled, so the numbers add up."""
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
