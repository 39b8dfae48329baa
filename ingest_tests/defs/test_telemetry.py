"""Export as set by the OTEL variables, to a real collector, from processes that end at once."""

import logging
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

import dagster as dg
import pytest

from ingest_assets.app import telemetry
from ingest_assets.app.home import open_home
from ingest_assets.app.telemetry import EXTRA, Flush, RepeatFilter, export_from_environment
from ingest_assets.defs.instance import open_instance
from ingest_assets.runner import read_manifest
from ingest_tests.conftest import clean_environment
from ingest_tests.defs.collector import Collector, running_collector

# A very short stage in a process that then exits without any clean-up.
SHORT_RUN = """
import os, sys
from ingest_assets.backends import ThreadBackend
from ingest_assets.app.telemetry import start_export
from ingest_assets.settings.execution import StageOptions
from ingest_assets.runner import RunSpec, Telemetry, run_stage
from ingest_tests.runner.fakes import plan_of
from ingest_tests.runner.workers import by_name

for batch in ("b1", "b2"):
    telemetry = Telemetry(batch_hint=batch, flush=start_export())
    backend = ThreadBackend(1)
    run_stage(RunSpec(plan_of("ok", "fail"), by_name, StageOptions(), backend=backend, telemetry=telemetry))
print("otlp" in " ".join(sys.modules), flush=True)
os._exit(0)
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector that runs as long as the test."""
    with running_collector() as collector:
        yield collector


def short_run(**variables: str) -> subprocess.CompletedProcess[str]:
    """Two stage runs with an item that succeeds and one that fails, in a separate process."""
    return subprocess.run(
        [sys.executable, "-c", SHORT_RUN],
        env=clean_environment() | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_a_short_run_loses_nothing(collector: Collector):
    """Everything is sent when a stage ends, so the end of the process does not matter."""
    short_run(OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)

    expected = Counter({("stage", "success"): 2, ("stage", "failure"): 2})
    assert collector.items() == expected
    assert collector.counted() == expected
    assert {fields["batch_hint"] for _, fields in collector.spans()} == {"b1", "b2"}
    assert collector.service() == "ingest_assets"


def test_each_signal_can_have_its_own_endpoint_and_the_service_its_own_name(collector: Collector):
    """Here traces only."""
    short_run(
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.endpoint}/v1/traces",
        OTEL_SERVICE_NAME="library",
    )

    assert collector.paths() == {"/v1/traces"}
    assert collector.service() == "library"


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
            "OTEL_TRACES_EXPORTER": "none",
            "OTEL_METRICS_EXPORTER": "none",
        },
    ],
    ids=["unset", "disabled", "no exporter"],
)
def test_nothing_is_loaded_without_the_variables(variables: dict[str, str]):
    """And nothing is printed."""
    done = short_run(**variables)

    assert done.stdout == "False\n"
    assert "elemetry" not in done.stderr


def test_an_unreachable_collector_costs_one_wait_and_a_few_lines():
    """Not one per stage, and it never fails a run."""
    began = time.monotonic()
    done = short_run(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")

    assert time.monotonic() - began < 4 * telemetry.FLUSH_S
    lines = [line for line in done.stderr.splitlines() if "telemetry" in line or "export" in line]
    assert lines[0] == "The telemetry collector did not answer within 5 s; the run continues."
    assert len(lines) <= 3


def test_a_missing_sdk_is_one_line_that_says_what_to_do(monkeypatch, caplog):
    """However many stages run."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    telemetry.start_export.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert [telemetry.start_export() for _ in range(3)] == [None] * 3
    finally:
        telemetry.start_export.cache_clear()

    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("OTEL_* variables request telemetry, but none is sent: ")
    assert line.endswith(EXTRA)
    assert EXTRA == "pip install 'ingest-assets[telemetry]'"


def test_an_unsupported_protocol_is_one_line(caplog):
    """Otherwise each request to a gRPC port would fail."""
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    with caplog.at_level(logging.WARNING):
        assert export_from_environment(variables) is None

    (record,) = caplog.records
    assert "OTEL_EXPORTER_OTLP_PROTOCOL is grpc; only http/protobuf is supported" in record.getMessage()


def test_a_flush_waits_once_for_an_unreachable_collector():
    """Stages must not each wait, and short runs must not lose data once it is back."""
    is_back, sent = threading.Event(), []

    def send() -> None:
        is_back.wait(30)
        time.sleep(0.05)
        sent.append("spans")

    flush = Flush([send], wait_s=1)
    assert seconds(flush) >= 1
    assert seconds(flush) < 1
    is_back.set()
    wait_until_sent()
    flush()
    wait_until_sent()
    flush()

    assert sent == ["spans"] * 3


def seconds(call: Callable[[], None]) -> float:
    """Return how long a call takes."""
    began = time.monotonic()
    call()
    return time.monotonic() - began


def wait_until_sent() -> None:
    """Wait until the sending thread has ended."""
    for thread in threading.enumerate():
        if thread.name == "ingest-telemetry":
            thread.join(timeout=30)


def test_a_failing_send_does_not_keep_the_others_from_sending():
    """Metrics are sent even if traces fail."""
    sent = []

    def fails() -> None:
        raise TimeoutError

    Flush([fails, lambda: sent.append("metrics")])()

    assert sent == ["metrics"]


def test_an_exporter_says_each_failure_once():
    """Its retries are not logged."""
    said = RepeatFilter()
    records = [
        logging.LogRecord("x", level, "", 0, text, None, None)
        for level, text in [(logging.WARNING, "retrying"), (logging.ERROR, "401"), (logging.ERROR, "401")]
    ]

    assert [said.filter(record) for record in records] == [False, True, False]


@pytest.mark.slow
def test_collector_manifest_and_dagster_agree_on_a_real_run(ingest, notes, collector: Collector):
    """With the command, on a damaged document among valid ones."""
    (notes / "damaged.pdf").write_bytes(b"%PDF-1.4 cut off")
    ingest.apart("doctags", "--input", notes, check=1, OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint)

    layout = open_home(ingest.home).layout
    names = {"done": "success", "failed": "failure"}
    rows = [
        (stage, row) for stage in ("documents", "doctags") for row in read_manifest(layout.manifest(stage))
    ]
    assert Counter((stage, names[row.status]) for stage, row in rows) == collector.items()
    assert collector.items() == collector.counted()
    assert collector.items()["doctags", "failure"] == 1
    with open_instance(layout) as instance:
        for is_item, fields in collector.spans():
            if not is_item:
                event = instance.get_latest_materialization_event(dg.AssetKey(fields["stage_name"]))
                told = event.asset_materialization.metadata
                for name in ("scheduled", "succeeded", "failed", "skipped", "cancelled", "known_failures"):
                    assert told[name].value == fields[name], name
