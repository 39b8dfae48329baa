"""The loop of a running stage: take from the plan, submit, wait, settle; stop early when told to."""

import contextlib
import queue
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from ingest_assets.core.errors import ItemCancelled, QuarantineFailed, SubmitFailed, WorkerDied, WorkerLost
from ingest_assets.core.items import ItemContext, StageOutcome
from ingest_assets.runner.attempt import Attempt, Attempting, caught, described
from ingest_assets.runner.reporter import Reporter, Tally
from ingest_assets.runner.schedule import (
    ReadyQueue,
    RetryQueue,
    Ticket,
    backoff_s,
    is_loss,
    reason_to_stop,
    should_retry,
    too_many_abandoned,
    verdict_of,
)
from ingest_assets.runner.signals import Interrupts

if TYPE_CHECKING:
    from ingest_assets.runner.run import RunSpec

PLAN_ITEMS_PER_TURN = 1000  # some milliseconds of work, when all of them are skipped
LOOK_INTERVAL_S = 1.0  # between looks at a backend that may have broken
_NOTHING_HELD = contextlib.nullcontext()


class Coordinator:
    """One stage run, in the caller's thread. What it holds is bounded by `max_queue` and the workers."""

    def __init__(self, spec: "RunSpec") -> None:
        self._items = iter(spec.plan.items)
        self._plan_has_more = True
        self._options = spec.options
        self._backend, self._keeps_backend = spec.backend, spec.keep_backend
        self._quarantine = spec.quarantine if spec.options.force else None
        self._clock = spec.clock
        self._rng = spec.rng
        self._call = Attempting(spec.plan.stage, spec.worker, spec.options.per_item_timeout_s)
        self._tally = Tally(spec.rng)
        self._reporter = Reporter(spec, self._tally)
        self._open: dict[int, Ticket] = {}
        self._ready = ReadyQueue(spec.options.schedule)
        self._retrying = RetryQueue()
        self._in_flight: dict[Future[Any], Ticket] = {}
        self._arrivals: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._interrupts = Interrupts(self._clock.monotonic_s, lambda: self._arrivals.put(Future()))
        self._grace_ends_s: float | None = None

    def run(self) -> StageOutcome:
        """Run to the end, to a reason to stop, or to an interrupt."""
        with self._interrupts:
            try:
                self._reporter.start()
                while self._tally.cancelled_reason is None and (self._plan_has_more or self._open):
                    self._turn()
                self._give_grace()
            except BaseException as error:  # an interrupt, whatever the host calls it, or a plan that failed
                self._interrupts.stop_raising()
                if self._tally.cancelled_reason is None:
                    is_fault = isinstance(error, Exception)
                    self._tally.cancelled_reason = f"the plan failed: {error}" if is_fault else "interrupted"
                self._give_grace()
                raise
            finally:
                outcome = self._end()
        return outcome

    def _turn(self) -> None:
        self._take_from_plan()
        for ticket in self._retrying.due(self._clock.monotonic_s()):
            self._make_ready(ticket)
        self._submit_ready()
        self._settle_arrivals(self._seconds_to_wait())
        self._check_budget()
        self._reporter.report_progress()

    def _take_from_plan(self) -> None:
        """A bounded bite, so that a long row of skipped items does not keep the workers waiting."""
        for _ in range(PLAN_ITEMS_PER_TURN):
            if not self._wants_more():
                return
            item = next(self._items, None)
            if item is None:
                self._plan_has_more = False
                return
            verdict = verdict_of(item, self._options)
            if verdict == "run":
                ticket = Ticket(item, plan_order=self._tally.scheduled)
                with self._interrupts.held():
                    self._tally.scheduled += 1
                    self._open[ticket.plan_order] = ticket
                    self._make_ready(ticket)
                continue
            # Plans have millions of these, so nothing is held back for telemetry that nobody records.
            with self._interrupts.held() if self._reporter.records_items else _NOTHING_HELD:
                self._tally.skipped += 1
                self._tally.known_failures += verdict == "known_failure"
                self._reporter.skipped(item, verdict)

    def _wants_more(self) -> bool:
        return self._plan_has_more and len(self._ready) + len(self._retrying) < self._options.max_queue

    def _make_ready(self, ticket: Ticket) -> None:
        ticket.waiting_since_epoch_s = self._clock.epoch_s()
        self._ready.push(ticket)

    def _submit_ready(self) -> None:
        while self._ready and len(self._in_flight) < self._backend.workers:
            ticket = self._ready.pop()
            error = self._start(ticket)
            if error is not None:
                self._settle(ticket, self._failed_attempt(ticket, error, self._clock.epoch_s()))
                self._check_budget()
            if self._tally.cancelled_reason is not None:
                return

    def _start(self, ticket: Ticket) -> BaseException | None:
        """Begin an attempt, or say why it cannot begin."""
        if ticket.attempt_no == 1:
            self._reporter.before_item(ticket.item)
            if (move_outputs := self._quarantine) is not None:
                _, error = caught(lambda: move_outputs(ticket.item))
                if error is not None:
                    text = f"what the item would overwrite could not be moved away: {error}"
                    return QuarantineFailed(text)
        anew = self._options.force or not self._options.resume
        context = ItemContext(ticket.attempt_no, self._backend.workers, anew=anew)
        ticket.submitted_epoch_s = self._clock.epoch_s()
        self._reporter.before_attempt(ticket)
        # An interrupt between the two steps of a hand-over would leave an item running that nobody waits for.
        with _NOTHING_HELD if self._backend.is_inline else self._interrupts.held():
            timeout_s = self._options.per_item_timeout_s
            future, error = caught(lambda: self._backend.submit(self._call, ticket.item, context, timeout_s))
            if isinstance(error, SubmitFailed):
                return error
            if future is None:
                return SubmitFailed(f"the item was not taken: {type(error).__name__}: {error}")
            self._tally.retries += ticket.attempt_no > 1
            self._in_flight[future] = ticket
            future.add_done_callback(self._arrivals.put)
        return None

    def _seconds_to_wait(self) -> float:
        if self._wants_more() or (not self._in_flight and not self._retrying):
            return 0.0
        interval_s = self._options.diagnostics_interval_s
        if self._in_flight:
            interval_s = min(interval_s, LOOK_INTERVAL_S)
        due_s = self._retrying.next_due_s()
        return interval_s if due_s is None else min(interval_s, max(0.0, due_s - self._clock.monotonic_s()))

    def _settle_arrivals(self, timeout_s: float) -> None:
        """Wait for the first, then take what else is there."""
        future = self._clock.wait(self._arrivals, timeout_s)
        while future is not None:
            if (ticket := self._in_flight.get(future)) is not None:
                self._settle_arrival(future, ticket)
            future = self._clock.wait(self._arrivals, 0)

    def _settle_arrival(self, future: Future[Any], ticket: Ticket) -> None:
        attempt = self._attempt_of(future, ticket)
        if attempt is None and self._tally.cancelled_reason is None:  # the backend did so unasked
            lost = WorkerLost("the backend gave the item up")
            attempt = self._failed_attempt(ticket, lost, ticket.submitted_epoch_s)
        has_died = attempt is not None and attempt.error is not None and attempt.error.code == WorkerDied.code
        # A supervisor that ends us may end our workers in the same breath: no fault of their items.
        if attempt is None or (has_died and self._interrupts.is_ending):
            del self._in_flight[future]  # stays open, and is cancelled at the end
        else:
            self._settle(ticket, attempt, future)

    def _attempt_of(self, future: Future[Any], ticket: Ticket) -> Attempt | None:
        """What the backend's future says; nothing when the item was cancelled."""
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or isinstance(error, ItemCancelled):
            return None
        if error is not None:
            return self._failed_attempt(ticket, error, ticket.submitted_epoch_s)
        attempt: Attempt = future.result()
        return attempt

    def _failed_attempt(self, ticket: Ticket, error: BaseException, started_epoch_s: float) -> Attempt:
        """One of which no worker has told."""
        record = described(error, stage=self._call.stage, item_id=ticket.item.item_id)
        return Attempt(None, record, started_epoch_s, self._clock.epoch_s())

    def _settle(self, ticket: Ticket, attempt: Attempt, future: Future[Any] | None = None) -> None:
        with self._interrupts.held():
            if future is not None:
                del self._in_flight[future]
            self._account_for(ticket, attempt)
        if ticket.plan_order not in self._open:
            self._reporter.after_item(ticket.item, attempt)

    def _account_for(self, ticket: Ticket, attempt: Attempt) -> None:
        self._ready.release(ticket)
        self._reporter.record(ticket, attempt)
        self._tally.count(attempt.counts)
        error = attempt.error
        ticket.losses += error is not None and is_loss(error)
        if error is not None and should_retry(error, ticket.attempt_no, ticket.losses, self._options):
            due_s = self._clock.monotonic_s() + backoff_s(ticket.attempt_no, self._options, self._rng)
            ticket.attempt_no += 1
            self._retrying.push(due_s, ticket)
            return
        del self._open[ticket.plan_order]
        if attempt.result is not None:
            self._tally.succeed(attempt.result)
        elif error is not None:
            self._tally.fail(ticket.plan_order, error)
        self._reporter.settled(ticket, attempt)

    def _check_budget(self) -> None:
        options, tally = self._options, self._tally
        reason = (
            reason_to_stop(options, tally.succeeded, tally.failed)
            or too_many_abandoned(self._backend.abandoned, self._backend.workers, options.per_item_timeout_s)
            or self._backend.broken
        )
        if reason is not None and tally.cancelled_reason is None:
            tally.cancelled_reason = reason

    def _give_grace(self) -> None:
        """Start nothing more; what finishes within the grace time, which is given once, still counts."""
        if self._grace_ends_s is None:
            self._grace_ends_s = self._clock.monotonic_s() + self._options.grace_s
        for future in list(self._in_flight):
            if future.cancel() or future.done():  # not begun, or its arrival was lost to an interrupt
                self._arrivals.put(future)
        while self._in_flight and not self._interrupts.is_urgent:
            left_s = self._grace_ends_s - self._clock.monotonic_s()
            if left_s <= 0:
                return
            self._settle_arrivals(min(left_s, self._options.diagnostics_interval_s))
            self._reporter.report_progress()

    def _end(self) -> StageOutcome:
        """Kill what still runs and tell everybody; called on every way out, and not to be interrupted."""
        with self._interrupts.held():
            try:
                if not self._keeps_backend or not all(future.done() for future in self._in_flight):
                    self._reporter.close_backend()
                self._settle_arrivals(0)
            finally:
                outcome = self._reporter.finish(list(self._open.values()))
        return outcome
