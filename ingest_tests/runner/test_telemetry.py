"""Spans and metrics agree with outcome and manifest, and cost nothing without an SDK."""

import random
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.trace import StatusCode

from ingest_assets.backends import ThreadBackend
from ingest_assets.core.items import WorkItem
from ingest_assets.runner import Manifest, ManifestRow, RunSpec, Telemetry, read_manifest, run_stage
from ingest_assets.settings.execution import StageOptions
from ingest_tests.runner.ear import BrokenTracer, DeafTracer, Ear, assert_they_agree
from ingest_tests.runner.fakes import FastClock, Recording, known_to_fail, plan_from, plan_of, satisfied
from ingest_tests.runner.test_accounting import item_of, options, plans
from ingest_tests.runner.workers import by_name

ITEM_FIELDS = {
    "stage_name",
    "policy",
    "workers",
    "batch_hint",
    "time_submit_ms",
    "time_start_ms",
    "time_end_ms",
    "time_queue_ms",
    "time_exec_ms",
    "status",
}


@given(plans, options, st.integers(1, 4))
def test_outcome_manifest_spans_and_metrics_agree(kinds, stage_options, workers):
    """Items are retried, skipped, known to fail or cancelled."""
    ear = Ear()
    with tempfile.TemporaryDirectory() as folder:
        manifest = Manifest(Path(folder) / "manifest.jsonl")
        outcome = run_stage(
            RunSpec(
                plan_from(item_of(number, kind) for number, kind in enumerate(kinds)),
                by_name,
                stage_options,
                backend=ThreadBackend(workers),
                manifest=manifest,
                telemetry=ear.telemetry(),
                rng=random.Random(1),
            )
        )
        rows = list(read_manifest(manifest.path))

    assert_they_agree(ear, outcome, rows)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_telemetry_of_an_interrupted_stage_is_complete(tmp_path, error):
    """Items can be done, running, waiting for a retry or waiting for a worker."""

    def items():
        yield from [WorkItem("ok-0", "f"), satisfied("ok-1"), WorkItem("missing-2", "f")]
        yield from [WorkItem(f"sleep-{number}", "f", meta={"seconds": 0.5}) for number in (3, 4)]
        raise error

    ear, hooks, manifest = Ear(), Recording(), Manifest(tmp_path / "manifest.jsonl")
    stage_options = StageOptions(retries=2, retry_backoff_s=60, max_queue=2)
    with pytest.raises(error):
        run_stage(
            RunSpec(
                plan_from(items()),
                by_name,
                stage_options,
                hooks,
                backend=ThreadBackend(1),
                manifest=manifest,
                telemetry=ear.telemetry(),
            )
        )

    (outcome,) = hooks.outcomes
    assert outcome.cancelled >= 2
    assert_they_agree(ear, outcome, list(read_manifest(manifest.path)))
    assert ear.stage().status.status_code is StatusCode.ERROR


class Pressing(Manifest):
    """Sends Ctrl-C while the first row is written."""

    def append(self, row: ManifestRow) -> None:
        """The signal is deferred until the item is accounted for, and raised before its hook."""
        super().append(row)
        if row.item_id == "ok-1":
            signal.raise_signal(signal.SIGINT)


def test_an_interrupt_before_the_hooks_of_an_item_loses_no_span(tmp_path):
    """Telemetry reports each item that is counted."""
    ear, hooks, manifest = Ear(), Recording(), Pressing(tmp_path / "manifest.jsonl")
    with pytest.raises(KeyboardInterrupt):
        run_stage(
            RunSpec(
                plan_from([satisfied("s"), *plan_of("ok", "ok", "ok").items]),
                by_name,
                StageOptions(max_queue=1, grace_s=0),
                hooks,
                backend=ThreadBackend(1),
                manifest=manifest,
                telemetry=ear.telemetry(),
            )
        )

    assert "after_item ok-1 done" not in hooks.calls
    assert_they_agree(ear, hooks.outcomes[0], list(read_manifest(manifest.path)))


def test_after_an_exceeded_budget_all_reports_have_the_cancelled_items(tmp_path):
    """An item that never started has no execution time."""
    ear, manifest = Ear(), Manifest(tmp_path / "manifest.jsonl")
    outcome = run_stage(
        RunSpec(
            plan_of("ok", "fail", "ok", "ok"),
            by_name,
            StageOptions(error_budget=0),
            backend=ThreadBackend(1),
            manifest=manifest,
            telemetry=ear.telemetry(),
        )
    )

    assert outcome.cancelled == 2
    assert_they_agree(ear, outcome, list(read_manifest(manifest.path)))
    cancelled = [span.attributes for span in ear.items() if span.attributes["status"] == "cancelled"]
    assert [fields["time_exec_ms"] for fields in cancelled] == [0, 0]
    assert {fields["cancelled_reason"] for fields in cancelled} == {outcome.cancelled_reason}


def test_the_span_of_an_item_has_the_documented_fields_and_times(tmp_path):
    """The times are those of the manifest, also as the span's start and end."""
    ear, manifest = Ear(), Manifest(tmp_path / "manifest.jsonl")
    plan = plan_from(
        [WorkItem("sleep-0", "f", meta={"seconds": 0.02}), WorkItem("fail-1", "f"), satisfied("s")]
    )
    run_stage(
        RunSpec(
            plan,
            by_name,
            StageOptions(),
            backend=ThreadBackend(1),
            manifest=manifest,
            telemetry=ear.telemetry(),
            run_id="run-7",
        )
    )

    rows = {row.item_id: row for row in read_manifest(manifest.path)}
    assert ear.stage().attributes["run_id"] == "run-7"
    for span in ear.items():
        attributes = span.attributes
        assert set(attributes) >= ITEM_FIELDS
        assert (attributes["stage_name"], attributes["policy"], attributes["workers"]) == ("stage", "io", 1)
        assert attributes["batch_hint"] == "batch-7"
        assert span.parent.span_id == ear.stage().context.span_id
        assert span.start_time == pytest.approx(attributes["time_submit_ms"] * 1e6, abs=2000)
        assert span.end_time == pytest.approx(attributes["time_end_ms"] * 1e6, abs=2000)
        if row := rows.get(attributes["item_id"]):
            assert attributes["time_queue_ms"] == pytest.approx(row.timings["queue_s"] * 1e3, abs=0.002)
            assert attributes["time_exec_ms"] == pytest.approx(row.timings["exec_s"] * 1e3, abs=0.002)


def test_a_retried_item_is_one_span_from_its_first_attempt_to_its_last():
    """Each failed attempt is an event of the span."""
    ear, clock = Ear(), FastClock()
    stage_options = StageOptions(retries=1, retry_backoff_s=3600, diagnostics_interval_s=1e6)
    run_stage(
        RunSpec(
            plan_of("recovers", "missing"),
            by_name,
            stage_options,
            backend=ThreadBackend(1),
            telemetry=ear.telemetry(),
            clock=clock,
        )
    )

    spans = {span.attributes["item_id"]: span for span in ear.items()}
    recovered, missing = spans["recovers-0"], spans["missing-1"]
    assert (recovered.attributes["status"], recovered.attributes["attempts"]) == ("success", 2)
    assert [event.attributes["attempt_no"] for event in recovered.events] == [1]
    assert recovered.start_time == int(1000.0 * 1e9)
    assert recovered.attributes["time_submit_ms"] >= (1000.0 + 3600) * 1e3
    assert (missing.attributes["status"], missing.attributes["error.type"]) == (
        "failure",
        "E_DOCUMENT_MISSING",
    )
    assert [event.attributes["attempt_no"] for event in missing.events] == [1, 2]
    assert missing.status.status_code is StatusCode.ERROR
    assert missing.status.description == "missing-1 is not there"


def test_the_span_of_a_skipped_item_has_the_verdict():
    """The item is current, or known to fail."""
    ear = Ear()
    plan = plan_from([satisfied("a"), known_to_fail("b")])
    run_stage(RunSpec(plan, by_name, StageOptions(), backend=ThreadBackend(1), telemetry=ear.telemetry()))

    assert [(span.attributes["item_id"], span.attributes["verdict"]) for span in ear.items()] == [
        ("a", "skip"),
        ("b", "known_failure"),
    ]


def test_active_workers_are_counted_while_they_work():
    """The metric is read inside an item."""
    ear, values = Ear(), []

    def read_metric(item, context):
        values.append(ear.metrics()["ingest.active_workers"][0].value)
        return by_name(item, context)

    run_stage(
        RunSpec(
            plan_of("ok", "ok"),
            read_metric,
            StageOptions(),
            backend=ThreadBackend(1),
            telemetry=ear.telemetry(),
        )
    )

    assert values == [1, 1]
    assert ear.stage().attributes["active_workers_peak"] == 1


def test_spans_with_any_item_id_can_be_exported():
    """A file name that is not valid Unicode must not lose the other spans of its request."""
    ear = Ear()
    plan = plan_from([WorkItem("ok-\udcff", "f"), WorkItem("fail-\udcff", "f"), satisfied("\udcff")])
    stage_options = StageOptions(error_budget=0)
    run_stage(RunSpec(plan, by_name, stage_options, backend=ThreadBackend(1), telemetry=ear.telemetry()))

    assert b"fail-\\udcff" in encode_spans(ear.memory.get_finished_spans()).SerializeToString()


def test_without_a_recording_tracer_items_have_no_spans():
    """A million skipped items must be cheap."""
    tracer = DeafTracer()
    plan = plan_from(
        [satisfied("a"), WorkItem("ok-1", "f"), WorkItem("missing-2", "f"), WorkItem("ok-3", "f")]
    )
    stage_options = StageOptions(error_budget=0)
    run_stage(
        RunSpec(plan, by_name, stage_options, backend=ThreadBackend(1), telemetry=Telemetry(tracer=tracer))
    )

    assert tracer.started == 1


def test_a_dry_run_has_no_telemetry():
    """A dry run has no effects."""
    ear = Ear()
    run_stage(
        RunSpec(
            plan_of("ok"),
            by_name,
            StageOptions(dry_run=True),
            backend=ThreadBackend(1),
            telemetry=ear.telemetry(),
        )
    )

    assert ear.memory.get_finished_spans() == ()
    assert ear.metrics() == {}


@pytest.mark.parametrize("works", [0, 1, 2])
def test_broken_telemetry_is_a_warning(works):
    """The items do not fail."""
    outcome = run_stage(
        RunSpec(
            plan_from([satisfied("a"), WorkItem("ok-0", "f"), WorkItem("missing-1", "f")]),
            by_name,
            StageOptions(retries=1, retry_backoff_s=0),
            backend=ThreadBackend(1),
            telemetry=Telemetry(tracer=BrokenTracer(works)),
        )
    )

    assert (outcome.succeeded, outcome.failed, outcome.skipped) == (1, 1, 1)
    assert "the telemetry raised RuntimeError: the tracer is broken" in outcome.warnings


def test_telemetry_is_flushed_at_the_end_of_a_stage():
    """A short process can end right after it. A failed flush is a warning."""
    ear, ended = Ear(), []

    def flush() -> None:
        ended.append(ear.stage().attributes["succeeded"])
        raise RuntimeError("no route to the collector")

    outcome = run_stage(
        RunSpec(
            plan_of("ok"),
            by_name,
            StageOptions(),
            backend=ThreadBackend(1),
            telemetry=ear.telemetry(flush=flush),
        )
    )

    assert ended == [1]
    assert outcome.warnings == ("the telemetry raised RuntimeError: no route to the collector",)
