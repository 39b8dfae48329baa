"""Who exports telemetry: the standard OTEL_* variables say whether and where to."""

import functools
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry import metrics, trace

from ingest_assets.core.errors import ConfigError
from ingest_assets.runner.attempt import caught

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider


SERVICE = "ingest_assets"
PROTOCOL = "http/protobuf"
EXTRA = "pip install 'ingest-assets[telemetry]'"
FLUSH_S = 5.0
_log = logging.getLogger(__name__)


class Flush:
    """Sends what there is and waits for it, but once only for a collector that does not answer."""

    def __init__(self, sends: Sequence[Callable[[], object]], wait_s: float = FLUSH_S) -> None:
        self._sends, self._wait_s = sends, wait_s
        self._thread: threading.Thread | None = None
        self._was_slow = False

    def __call__(self) -> None:
        """Start sending unless that is under way; the SDK's own time limits are too long to wait for."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._send, name="ingest-telemetry", daemon=True)
            self._thread.start()
            self._thread.join(0 if self._was_slow else self._wait_s)
            if self._thread.is_alive() and not self._was_slow:
                self._was_slow = True
                _log.warning(
                    "The telemetry collector did not answer within %g s; the run goes on.", self._wait_s
                )

    def _send(self) -> None:
        began_s = time.monotonic()
        for send in self._sends:
            caught(send)  # the SDK has logged what went wrong
        self._was_slow = time.monotonic() - began_s > self._wait_s


class SaidOnce(logging.Filter):
    """Of an exporter's complaints: no retries, and each failure once."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """True for what is worth a line."""
        words = record.getMessage()
        is_new = record.levelno >= logging.ERROR and words not in self._said
        self._said |= {words} if is_new else set()
        return is_new


@functools.cache
def export_once() -> Flush | None:
    """Begin to export as the environment tells, before anything is measured: earlier measures are lost."""
    return export_as_told(os.environ)


def export_as_told(environment: Mapping[str, str]) -> Flush | None:
    """Set up the providers that the variables ask for and nobody has set yet; a fault is one warning."""
    wanted = [
        signal
        for signal in ("TRACES", "METRICS")
        if environment.get(f"OTEL_{signal}_EXPORTER", "").strip() in {"", "otlp"}
        and _otlp(signal, "ENDPOINT", environment)
    ]
    if not wanted or environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    providers, error = caught(lambda: _set_up(wanted, environment))
    if isinstance(error, ImportError):
        _log.warning("OTEL_* variables ask for telemetry, but none is sent: %s. To have it: %s", error, EXTRA)
    elif error is not None:
        _log.warning("OTEL_* variables ask for telemetry, but none is sent: %s", error)
    return Flush([provider.force_flush for provider in providers]) if providers else None


def _otlp(signal: str, name: str, environment: Mapping[str, str]) -> str:
    """A setting of the exporter: the signal's own, or the one for all."""
    own = environment.get(f"OTEL_EXPORTER_OTLP_{signal}_{name}", "").strip()
    return own or environment.get(f"OTEL_EXPORTER_OTLP_{name}", "").strip()


def _set_up(wanted: list[str], environment: Mapping[str, str]) -> list["TracerProvider | MeterProvider"]:
    """Make all, then set all: a fault leaves nothing half done."""
    for signal in wanted:
        protocol = _otlp(signal, "PROTOCOL", environment) or PROTOCOL
        if protocol != PROTOCOL:
            raise ConfigError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}; only {PROTOCOL} is spoken here")
    resource = _resource()
    traces = _tracer_provider(resource) if "TRACES" in wanted else None
    measures = _meter_provider(resource) if "METRICS" in wanted else None
    if traces is not None:
        trace.set_tracer_provider(traces)
    if measures is not None:
        metrics.set_meter_provider(measures)
    return [provider for provider in (traces, measures) if provider is not None]


def _resource() -> "Resource":
    """Who we are. Each process is an instance of its own, or the counts of two would be taken for one's."""
    from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, OTELResourceDetector, Resource

    told = OTELResourceDetector().detect().attributes
    return Resource.create({SERVICE_NAME: SERVICE, SERVICE_INSTANCE_ID: str(uuid.uuid4()), **told})


def _tracer_provider(resource: "Resource") -> "TracerProvider | None":
    """Nothing when the host has one. Stages flush, so that the end of the process need not wait."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    logging.getLogger(OTLPSpanExporter.__module__).addFilter(SaidOnce())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _meter_provider(resource: "Resource") -> "MeterProvider | None":
    """Nothing when the host has one."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    if isinstance(metrics.get_meter_provider(), MeterProvider):
        return None
    logging.getLogger(OTLPMetricExporter.__module__).addFilter(SaidOnce())
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return MeterProvider([reader], resource=resource, shutdown_on_exit=False)
