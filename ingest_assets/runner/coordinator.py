"""The loop of a running stage: read the plan, submit items, wait, record results; stop early if required."""

import contextlib
import queue
from functools import partial
from typing import TYPE_CHECKING

from ingest_assets.core.errors import (
    ItemCancelled,
    ItemError,
    QuarantineFailed,
    ResultTimeout,
    SubmitFailed,
    WorkerDied,
    WorkerLost,
    caught,
)
from ingest_assets.core.items import ItemContext, StageOutcome
from ingest_assets.runner.attempt import Attempt, AttemptCall, error_record
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

PLAN_ITEMS_PER_TURN = 1000  # a few milliseconds if all are skipped
BACKEND_CHECK_INTERVAL_S = 1.0  # how often to check whether the backend has failed
_NOT_DEFERRED = contextlib.nullcontext()


class Coordinator:
    """One stage run, in the caller's thread. `max_queue` and the number of workers bound its memory."""

    def __init__(self, spec: "RunSpec") -> None:
        self._items = iter(spec.plan.items)
        self._plan_has_more = True
        self._options = spec.options
        self._backend, self._keeps_backend = spec.backend, spec.keep_backend
        self._quarantine = spec.quarantine if spec.options.force else None
        self._clock = spec.clock
        self._rng = spec.rng
        self._call = AttemptCall(spec.plan.stage, spec.worker, spec.options.per_item_timeout_s)
        self._tally = Tally(spec.rng)
        self._reporter = Reporter(spec, self._tally)
        self._open: dict[int, Ticket] = {}
        self._ready = ReadyQueue(spec.options.schedule)
        self._retrying = RetryQueue()
        self._in_flight: dict[str, Ticket] = {}  # by job id
        self._arrivals: queue.SimpleQueue[str] = queue.SimpleQueue()  # ids of jobs that have ended
        self._interrupts = Interrupts(self._clock.monotonic_s, lambda: self._arrivals.put(""))
        self._grace_ends_s: float | None = None

    def run(self) -> StageOutcome:
        """Run until the plan is complete, a reason to stop occurs, or an interrupt is raised."""
        with self._interrupts:
            try:
                self._reporter.start()
                while self._tally.cancelled_reason is None and (self._plan_has_more or self._open):
                    self._turn()
                self._give_grace()
            except BaseException as error:  # an interrupt, of any exception type, or an error of the plan
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
        self._read_plan()
        for ticket in self._retrying.due(self._clock.monotonic_s()):
            self._make_ready(ticket)
        self._submit_ready()
        self._collect_results(self._seconds_to_wait())
        self._check_reasons_to_stop()
        self._reporter.report_progress()

    def _read_plan(self) -> None:
        """Read a limited number of items, so that workers do not wait while many items are skipped."""
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
                with self._interrupts.deferred():
                    self._tally.scheduled += 1
                    self._open[ticket.plan_order] = ticket
                    self._make_ready(ticket)
                continue
            # Plans can skip millions of items, so interrupts are deferred only if telemetry records items.
            with self._interrupts.deferred() if self._reporter.records_items else _NOT_DEFERRED:
                self._tally.skipped += 1
                self._tally.known_failures += verdict == "known_failure"
                self._reporter.item_skipped(item, verdict)

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
                attempt = self._failed_attempt(ticket, error, self._clock.epoch_s())
                with self._interrupts.deferred():
                    self._account_for(ticket, attempt)
                self._call_hooks(ticket, attempt)
                self._check_reasons_to_stop()
            if self._tally.cancelled_reason is not None:
                return

    def _start(self, ticket: Ticket) -> BaseException | None:
        """Start an attempt; return the error if that fails."""
        if ticket.attempt_no == 1:
            self._reporter.before_item(ticket.item)
            if (move_outputs := self._quarantine) is not None:
                _, error = caught(lambda: move_outputs(ticket.item))
                if error is not None:
                    return QuarantineFailed(f"existing output could not be moved to quarantine: {error}")
        is_forced = self._options.force or not self._options.resume
        context = ItemContext(ticket.attempt_no, self._backend.workers, force=is_forced)
        ticket.submitted_epoch_s = self._clock.epoch_s()
        self._reporter.before_attempt(ticket)
        # An interrupt after `submit` and before the job id is stored would lose a running item.
        with _NOT_DEFERRED if self._backend.is_inline else self._interrupts.deferred():
            work, timeout_s = partial(self._call, ticket.item, context), self._options.per_item_timeout_s
            try:
                job_id = self._backend.submit(work, timeout_s, on_end=self._arrivals.put)
            except SubmitFailed as error:
                return error
            self._tally.retries += ticket.attempt_no > 1
            self._in_flight[job_id] = ticket
        return None

    def _seconds_to_wait(self) -> float:
        if self._wants_more() or (not self._in_flight and not self._retrying):
            return 0.0
        interval_s = self._options.diagnostics_interval_s
        if self._in_flight:
            interval_s = min(interval_s, BACKEND_CHECK_INTERVAL_S)
        due_s = self._retrying.next_due_s()
        return interval_s if due_s is None else min(interval_s, max(0.0, due_s - self._clock.monotonic_s()))

    def _collect_results(self, timeout_s: float) -> None:
        """Wait for the first result, then collect all that are available."""
        job_id = self._clock.wait(self._arrivals, timeout_s)
        while job_id is not None:
            if (ticket := self._in_flight.get(job_id)) is not None:
                self._collect_result(job_id, ticket)
            job_id = self._clock.wait(self._arrivals, 0)

    def _collect_result(self, job_id: str, ticket: Ticket) -> None:
        with self._interrupts.deferred():  # a backend returns a result only once
            try:
                attempt = self._attempt_of(job_id, ticket)
            except ResultTimeout:  # `_give_grace` also polls jobs that are still running
                return
            del self._in_flight[job_id]
            if attempt is None:  # the item stays open and is recorded as cancelled at the end
                return
            self._account_for(ticket, attempt)
        self._call_hooks(ticket, attempt)

    def _attempt_of(self, job_id: str, ticket: Ticket) -> Attempt | None:
        """Return the attempt of a job that has ended; None if the end of the stage cancelled it."""
        failure: ItemError
        try:
            attempt: Attempt = self._backend.get_result(job_id, timeout=0)
            return attempt
        except ResultTimeout:
            raise
        except ItemCancelled:
            if self._tally.cancelled_reason is not None:
                return None
            failure = WorkerLost("the backend cancelled the item")
        except ItemError as error:
            # Whatever stops this process can also stop its workers; the items did not cause that.
            if isinstance(error, WorkerDied) and self._interrupts.is_ending:
                return None
            failure = error
        return self._failed_attempt(ticket, failure, ticket.submitted_epoch_s)

    def _failed_attempt(self, ticket: Ticket, error: BaseException, started_epoch_s: float) -> Attempt:
        """Return the attempt of an item whose worker returned no result."""
        record = error_record(error, stage=self._call.stage, item_id=ticket.item.item_id)
        return Attempt(None, record, started_epoch_s, self._clock.epoch_s())

    def _call_hooks(self, ticket: Ticket, attempt: Attempt) -> None:
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
        self._reporter.item_ended(ticket, attempt)

    def _check_reasons_to_stop(self) -> None:
        options, tally = self._options, self._tally
        reason = (
            reason_to_stop(options, tally.succeeded, tally.failed)
            or too_many_abandoned(self._backend.abandoned, self._backend.workers, options.per_item_timeout_s)
            or self._backend.broken
        )
        if reason is not None and tally.cancelled_reason is None:
            tally.cancelled_reason = reason

    def _give_grace(self) -> None:
        """Let running items finish within the grace time, which starts once; start no others."""
        if self._grace_ends_s is None:
            self._grace_ends_s = self._clock.monotonic_s() + self._options.grace_s
        for job_id in list(self._in_flight):
            self._backend.cancel(job_id)
            self._arrivals.put(job_id)  # an interrupt may have lost the first notification
        while self._in_flight and not self._interrupts.is_urgent:
            left_s = self._grace_ends_s - self._clock.monotonic_s()
            if left_s <= 0:
                return
            self._collect_results(min(left_s, self._options.diagnostics_interval_s))
            self._reporter.report_progress()

    def _end(self) -> StageOutcome:
        """Stop running items and report the outcome. Always called, and never interrupted."""
        with self._interrupts.deferred():
            try:
                if not self._keeps_backend or self._in_flight:
                    self._reporter.close_backend()
                self._collect_results(0)
            finally:
                outcome = self._reporter.finish(list(self._open.values()))
        return outcome
