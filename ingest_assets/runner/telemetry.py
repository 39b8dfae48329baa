"""OpenTelemetry for a stage: a span for the run and for each item, counts and times as metrics.

Without an SDK, the API's spans do not record, and no item spans are built.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from opentelemetry import metrics, trace
from opentelemetry.metrics import Meter
from opentelemetry.trace import Span, StatusCode, Tracer

from ingest_assets.core.items import StageOutcome, Verdict, WorkItem
from ingest_assets.runner.attempt import Attempt, exec_s, printable, queue_s
from ingest_assets.runner.schedule import Ticket

SCOPE = "ingest_assets"
# From a small text to a scanned book; the API's default buckets are meant for milliseconds.
BUCKETS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)

# Fields of an outcome that the run's span has as attributes.
OUTCOME_FIELDS = (
    "scheduled",
    "skipped",
    "known_failures",
    "succeeded",
    "failed",
    "cancelled",
    "retries",
    "rows",
    "items_per_s",
)

Status = Literal["success", "failure", "skipped", "cancelled"]
Fields = dict[str, str | int | float]


class Instruments:
    """The metrics, the same for all stages."""

    def __init__(self, meter: Meter) -> None:
        self.items = meter.create_counter("ingest.items", "{item}", "Items by stage and status.")
        self.queue_time = meter.create_histogram(
            "ingest.attempt.queue_time",
            "s",
            "Time from ready to started, per attempt.",
            explicit_bucket_boundaries_advisory=BUCKETS_S,
        )
        self.exec_time = meter.create_histogram(
            "ingest.attempt.exec_time",
            "s",
            "Time of an attempt on its worker.",
            explicit_bucket_boundaries_advisory=BUCKETS_S,
        )
        self.active_workers = meter.create_up_down_counter(
            "ingest.active_workers", "{worker}", "Workers with an item."
        )
        self.items_per_second = meter.create_gauge(
            "ingest.items_per_second", "{item}/s", "Throughput of the last run of a stage."
        )


@functools.cache
def _global_instruments() -> Instruments:
    """Return the global instruments, created once: the API connects them if an SDK is installed later."""
    return Instruments(metrics.get_meter(SCOPE))


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The tracer and meter of a stage, by default the global ones, and its batch.

    `flush` is called after each run, because a short process can end before the SDK exports.
    """

    batch_hint: str = ""
    tracer: Tracer | None = None
    meter: Meter | None = None
    flush: Callable[[], None] | None = None

    def begin(
        self, *, stage: str, policy: str, workers: int, run_id: str, now_epoch_s: float
    ) -> "StageTelemetry":
        """Open the span of a stage run."""
        tracer = self.tracer or trace.get_tracer(SCOPE)
        instruments = Instruments(self.meter) if self.meter else _global_instruments()
        fields: Fields = {
            "stage_name": stage,
            "policy": policy,
            "workers": workers,
            "batch_hint": self.batch_hint,
        }
        span = tracer.start_span(
            stage, attributes={**fields, "run_id": run_id}, start_time=_as_ns(now_epoch_s)
        )
        return StageTelemetry(tracer, instruments, span, fields)


class StageTelemetry:
    """Telemetry of one stage run. An item has one span, with an event for each failed attempt."""

    def __init__(self, tracer: Tracer, instruments: Instruments, span: Span, fields: Fields) -> None:
        self._tracer, self._metrics, self._span, self._fields = tracer, instruments, span, fields
        self._context = trace.set_span_in_context(span)
        self._labels = {name: fields[name] for name in ("stage_name", "policy")}
        self._counted: dict[Status, int] = {}
        self._open: dict[int, Span] = {}
        self._running: set[int] = set()
        self._peak = 0
        self.records_spans = span.is_recording()

    def attempt_started(self, ticket: Ticket) -> None:
        """Count an active worker."""
        self._running.add(ticket.plan_order)
        self._peak = max(self._peak, len(self._running))
        self._metrics.active_workers.add(1, self._labels)

    def attempt_ended(self, ticket: Ticket, attempt: Attempt) -> None:
        """Record the times of an attempt and, if it failed, its error."""
        if ticket.plan_order in self._running:  # false if the attempt could not start
            self._running.remove(ticket.plan_order)
            self._metrics.active_workers.add(-1, self._labels)
        self._metrics.queue_time.record(queue_s(ticket, attempt), self._labels)
        self._metrics.exec_time.record(exec_s(attempt), self._labels)
        if self.records_spans and (error := attempt.error) is not None:
            span = self._open[ticket.plan_order] = self._pop_span(ticket)
            failure: Fields = {"attempt_no": ticket.attempt_no, "code": error.code, "message": error.message}
            span.add_event("attempt failed", failure, _as_ns(attempt.ended_epoch_s))

    def item_ended(self, ticket: Ticket, attempt: Attempt) -> None:
        """End the span of an item that has succeeded or finally failed."""
        if not self.records_spans:
            return
        span = self._pop_span(ticket)
        span.set_attribute("attempts", ticket.attempt_no)
        if (error := attempt.error) is not None:
            span.set_attribute("error.type", error.code)
            span.set_status(StatusCode.ERROR, error.message)
        status: Status = "success" if error is None else "failure"
        self._end(span, status, ticket.waiting_since_epoch_s, attempt.started_epoch_s, attempt.ended_epoch_s)

    def item_skipped(self, item: WorkItem, verdict: Verdict, now_epoch_s: float) -> None:
        """Record a span for a skipped item."""
        span = self._start(item, now_epoch_s)
        span.set_attribute("verdict", verdict)
        self._end(span, "skipped", now_epoch_s, now_epoch_s, now_epoch_s)

    def item_cancelled(self, ticket: Ticket, reason: str, now_epoch_s: float) -> None:
        """End the span of a cancelled item; without an attempt it has no execution time."""
        if not self.records_spans:
            return
        span = self._pop_span(ticket)
        span.set_attributes({"attempts": ticket.attempt_no, "cancelled_reason": printable(reason)})
        started_s = ticket.submitted_epoch_s if ticket.plan_order in self._running else now_epoch_s
        self._end(span, "cancelled", ticket.waiting_since_epoch_s, started_s, now_epoch_s)

    def count(self, succeeded: int, failed: int, skipped: int, cancelled: int = 0) -> None:
        """Add to the metrics what the totals have gained since the last call."""
        totals: dict[Status, int] = {
            "success": succeeded,
            "failure": failed,
            "skipped": skipped,
            "cancelled": cancelled,
        }
        for status, total in totals.items():
            if new := total - self._counted.get(status, 0):
                self._metrics.items.add(new, {**self._labels, "status": status})
        self._counted = totals

    def finish(self, outcome: StageOutcome, now_epoch_s: float) -> None:
        """End the run's span with the numbers of the outcome."""
        self.count(outcome.succeeded, outcome.failed, outcome.skipped, outcome.cancelled)
        self._metrics.active_workers.add(-len(self._running), self._labels)
        self._running.clear()
        self._metrics.items_per_second.set(outcome.items_per_s, self._labels)
        self._span.set_attributes({name: getattr(outcome, name) for name in OUTCOME_FIELDS})
        self._span.set_attributes(
            {
                "queue_p50_ms": _as_ms(outcome.queue_s.p50),
                "queue_p95_ms": _as_ms(outcome.queue_s.p95),
                "exec_p50_ms": _as_ms(outcome.exec_s.p50),
                "exec_p95_ms": _as_ms(outcome.exec_s.p95),
                "active_workers_peak": self._peak,
            }
        )
        if outcome.cancelled_reason is not None:
            reason = printable(outcome.cancelled_reason)
            self._span.set_attribute("cancelled_reason", reason)
            self._span.set_status(StatusCode.ERROR, reason)
        self._span.end(_as_ns(now_epoch_s))

    def _pop_span(self, ticket: Ticket) -> Span:
        """Return the item's span: the open one if an attempt has failed, else a new one."""
        span = self._open.pop(ticket.plan_order, None)
        return span or self._start(ticket.item, ticket.waiting_since_epoch_s)

    def _start(self, item: WorkItem, start_epoch_s: float) -> Span:
        fields = {**self._fields, "item_id": printable(item.item_id)}  # OTLP requires valid Unicode
        name = f"{self._fields['stage_name']} item"
        return self._tracer.start_span(
            name, self._context, attributes=fields, start_time=_as_ns(start_epoch_s)
        )

    @staticmethod
    def _end(span: Span, status: Status, ready_s: float, start_s: float, end_s: float) -> None:
        """End a span with its status and the times of submit, start and end."""
        fields: Fields = {
            "time_submit_ms": _as_ms(ready_s),
            "time_start_ms": _as_ms(start_s),
            "time_end_ms": _as_ms(end_s),
            # Clocks can differ slightly; durations must not be negative.
            "time_queue_ms": _as_ms(max(0.0, start_s - ready_s)),
            "time_exec_ms": _as_ms(max(0.0, end_s - start_s)),
        }
        span.set_attributes({**fields, "status": status})
        span.end(_as_ns(max(ready_s, end_s)))


def _as_ms(seconds: float) -> float:
    return round(seconds * 1e3, 3)


def _as_ns(epoch_s: float) -> int:
    return int(epoch_s * 1e9)
