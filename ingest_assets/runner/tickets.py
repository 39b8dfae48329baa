"""Items on their way through a stage, and the two places where they wait."""

import heapq
from dataclasses import dataclass

from ingest_assets.model.items import WorkItem
from ingest_assets.model.options import Schedule


@dataclass(eq=False, slots=True)
class Ticket:
    """An item that must run: which attempt is next, and since when it waits for it."""

    item: WorkItem
    plan_order: int
    attempt_no: int = 1
    waiting_since_epoch_s: float = 0.0
    submitted_epoch_s: float = 0.0


class ReadyQueue:
    """Tickets that may start now: in plan order, or (`sjf`) the smallest cost hint of those waiting."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._heap: list[tuple[float, int, Ticket]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, ticket: Ticket) -> None:
        """Retries go first: their turn has come before."""
        cost = ticket.item.cost_hint if self._schedule == "sjf" else 0.0
        first = -1.0 if ticket.attempt_no > 1 else cost
        heapq.heappush(self._heap, (first, ticket.plan_order, ticket))

    def pop(self) -> Ticket:
        """The next to start."""
        return heapq.heappop(self._heap)[2]


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
