"""Recorders of a stage's telemetry, and checks that it agrees with the outcome and the manifest."""

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
    """Records spans and metrics in memory."""

    memory: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)

    def telemetry(self, **more: Any) -> Telemetry:
        """Return the telemetry for `run_stage`."""
        traces = TracerProvider(shutdown_on_exit=False)
        traces.add_span_processor(SimpleSpanProcessor(self.memory))
        measures = MeterProvider([self.reader], shutdown_on_exit=False)
        return Telemetry("batch-7", traces.get_tracer("test"), measures.get_meter("test"), **more)

    def items(self) -> list[ReadableSpan]:
        """Return the spans of items, in the order in which they ended."""
        return [span for span in self.memory.get_finished_spans() if span.parent is not None]

    def stage(self) -> ReadableSpan:
        """Return the only span of the run."""
        (span,) = [span for span in self.memory.get_finished_spans() if span.parent is None]
        return span

    def by_status(self) -> Counter[str]:
        """Return the number of item spans by status."""
        return Counter(span.attributes["status"] for span in self.items())

    def metrics(self) -> dict[str, list[Any]]:
        """Return the data points by metric."""
        data = self.reader.get_metrics_data()
        scopes = [scope for source in data.resource_metrics for scope in source.scope_metrics] if data else []
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


class DeafTracer(trace.NoOpTracer):
    """Counts the spans that are started, and records none."""

    def __init__(self) -> None:
        self.started = 0

    def start_span(self, *arguments: Any, **named: Any) -> trace.Span:
        """Return a span that does not record."""
        self.started += 1
        return trace.INVALID_SPAN


class BrokenTracer(trace.NoOpTracer):
    """Works `works` times, then raises."""

    def __init__(self, works: int) -> None:
        self._works = works
        self._real = TracerProvider(shutdown_on_exit=False).get_tracer("test")

    def start_span(self, *arguments: Any, **named: Any) -> trace.Span:
        """Return a real span, or raise."""
        self._works -= 1
        if self._works < 0:
            raise RuntimeError("the tracer is broken")
        return self._real.start_span(*arguments, **named)


def by_status_of(outcome: StageOutcome) -> Counter[str]:
    """Return the outcome's counts by the status names of telemetry."""
    return Counter(
        success=outcome.succeeded,
        failure=outcome.failed,
        skipped=outcome.skipped,
        cancelled=outcome.cancelled,
    )


def assert_they_agree(ear: Ear, outcome: StageOutcome, rows: list[ManifestRow]) -> None:
    """Compare the numbers of outcome, manifest, spans and metrics."""
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
    """Compare the attributes of the run's span with the outcome."""
    attributes = span.attributes
    for name in ("scheduled", "skipped", "known_failures", "succeeded", "failed", "cancelled", "retries"):
        assert attributes[name] == getattr(outcome, name)
    assert attributes["items_per_s"] == outcome.items_per_s
    assert attributes["active_workers_peak"] <= attributes["workers"] == outcome.workers
    assert attributes["queue_p50_ms"] == pytest.approx(outcome.queue_s.p50 * 1e3, abs=0.001)
    assert attributes["queue_p95_ms"] == pytest.approx(outcome.queue_s.p95 * 1e3, abs=0.001)
    assert attributes["exec_p50_ms"] == pytest.approx(outcome.exec_s.p50 * 1e3, abs=0.001)
    assert attributes["exec_p95_ms"] == pytest.approx(outcome.exec_s.p95 * 1e3, abs=0.001)
    assert attributes.get("cancelled_reason") == outcome.cancelled_reason
