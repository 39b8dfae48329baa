"""Those who listen to a stage's telemetry, and how what is heard must agree with the other accounts."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ingest_assets.core.items import StageOutcome
from ingest_assets.runner import ManifestRow, Telemetry


@dataclass
class Ear:
    """A tracer and a meter of its own, and what they heard."""

    memory: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def telemetry(self, **more: Any) -> Telemetry:
        """For `run_stage`."""
        traces = TracerProvider(shutdown_on_exit=False)
        traces.add_span_processor(SimpleSpanProcessor(self.memory))
        measures = MeterProvider([self.reader], shutdown_on_exit=False)
        return Telemetry("batch-7", traces.get_tracer("test"), measures.get_meter("test"), **more)

    def items(self) -> list[ReadableSpan]:
        """The items' spans, in the order they ended."""
        return [span for span in self.memory.get_finished_spans() if span.parent is not None]

    def stage(self) -> ReadableSpan:
        """The run's span, of which there is one."""
        (span,) = [span for span in self.memory.get_finished_spans() if span.parent is None]
        return span

    def by_status(self) -> Counter[str]:
        """How many items' spans say what."""
        return Counter(span.attributes["status"] for span in self.items())

    def metrics(self) -> dict[str, list[Any]]:
        """The data points by metric."""
        heard = self.reader.get_metrics_data()
        scopes = [scope for each in heard.resource_metrics for scope in each.scope_metrics] if heard else []
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


class DeafTracer(trace.NoOpTracer):
    """Counts the spans it is asked for and records none."""

    def __init__(self) -> None:
        self.asked = 0

    def start_span(self, *arguments: Any, **named: Any) -> trace.Span:
        """Never recording."""
        self.asked += 1
        return trace.INVALID_SPAN


class BrokenTracer(trace.NoOpTracer):
    """Works so many times, then raises."""

    def __init__(self, works: int) -> None:
        self._works = works
        self._real = TracerProvider(shutdown_on_exit=False).get_tracer("test")

    def start_span(self, *arguments: Any, **named: Any) -> trace.Span:
        """A real span or an error."""
        self._works -= 1
        if self._works < 0:
            raise RuntimeError("the tracer is broken")
        return self._real.start_span(*arguments, **named)


def by_status_of(outcome: StageOutcome) -> Counter[str]:
    """The outcome's counts under telemetry's names."""
    return Counter(
        success=outcome.succeeded,
        failure=outcome.failed,
        skipped=outcome.skipped,
        cancelled=outcome.cancelled,
    )


def assert_they_agree(ear: Ear, outcome: StageOutcome, rows: list[ManifestRow]) -> None:
    """Outcome, manifest, spans and metrics, number by number."""
    expected = by_status_of(outcome)
    assert ear.by_status() == expected
    measured = ear.metrics()
    assert Counter({p.attributes["status"]: p.value for p in measured.get("ingest.items", [])}) == expected
    last = Counter({row.item_id: row.status for row in rows}.values())
    assert last == Counter(done=outcome.succeeded, failed=outcome.failed, cancelled=outcome.cancelled)

    attempts = Counter(row.status for row in rows)
    events = [event for span in ear.items() for event in span.events]
    assert len(events) == attempts["failed"]
    for name in ("ingest.attempt.queue_time", "ingest.attempt.exec_time"):
        counted = sum(point.count for point in measured.get(name, []))
        assert counted == attempts["done"] + attempts["failed"]
    assert sum(point.value for point in measured["ingest.active_workers"]) == 0
    assert [point.value for point in measured["ingest.items_per_second"]] == [outcome.items_per_s]
    assert_the_stage_agrees(ear.stage(), outcome)


def assert_the_stage_agrees(span: ReadableSpan, outcome: StageOutcome) -> None:
    """The run's span carries the outcome's numbers."""
    told = span.attributes
    for name in ("scheduled", "skipped", "known_failures", "succeeded", "failed", "cancelled", "retries"):
        assert told[name] == getattr(outcome, name)
    assert told["items_per_s"] == outcome.items_per_s
    assert told["active_workers_peak"] <= told["workers"] == outcome.workers
    assert told["queue_p50_ms"] == pytest.approx(outcome.queue_s.p50 * 1e3, abs=0.001)
    assert told["queue_p95_ms"] == pytest.approx(outcome.queue_s.p95 * 1e3, abs=0.001)
    assert told["exec_p50_ms"] == pytest.approx(outcome.exec_s.p50 * 1e3, abs=0.001)
    assert told["exec_p95_ms"] == pytest.approx(outcome.exec_s.p95 * 1e3, abs=0.001)
    assert told.get("cancelled_reason") == outcome.cancelled_reason
