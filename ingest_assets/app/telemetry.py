"""Export telemetry if the standard OTEL_* variables request it."""

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
    """Sends pending telemetry and waits for it, but waits only once for a collector that does not answer."""

    def __init__(self, sends: Sequence[Callable[[], object]], wait_s: float = FLUSH_S) -> None:
        self._sends, self._wait_s = sends, wait_s
        self._thread: threading.Thread | None = None
        self._was_slow = False

    def __call__(self) -> None:
        """Start sending, unless it is in progress. The SDK's own timeouts are too long to wait for."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._send, name="ingest-telemetry", daemon=True)
            self._thread.start()
            self._thread.join(0 if self._was_slow else self._wait_s)
            if self._thread.is_alive() and not self._was_slow:
                self._was_slow = True
                _log.warning(
                    "The telemetry collector did not answer within %g s; the run continues.", self._wait_s
                )

    def _send(self) -> None:
        began_s = time.monotonic()
        for send in self._sends:
            caught(send)  # the SDK has logged the error
        self._was_slow = time.monotonic() - began_s > self._wait_s


class RepeatFilter(logging.Filter):
    """Lets an exporter log each error once, and no retries."""

    def __init__(self) -> None:
        super().__init__()
        self._logged: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for an error that was not logged before."""
        message = record.getMessage()
        is_new = record.levelno >= logging.ERROR and message not in self._logged
        self._logged |= {message} if is_new else set()
        return is_new


@functools.cache
def start_export() -> Flush | None:
    """Start the export that the environment requests. Measurements made before are lost."""
    return export_from_environment(os.environ)


def export_from_environment(environment: Mapping[str, str]) -> Flush | None:
    """Set up the requested providers unless they exist; an invalid setting is logged as a warning."""
    signals = [
        signal
        for signal in ("TRACES", "METRICS")
        if environment.get(f"OTEL_{signal}_EXPORTER", "").strip() in {"", "otlp"}
        and _otlp(signal, "ENDPOINT", environment)
    ]
    if not signals or environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    providers, error = caught(lambda: _set_up(signals, environment))
    if isinstance(error, ImportError):
        _log.warning("OTEL_* variables request telemetry, but none is sent: %s. Run: %s", error, EXTRA)
    elif error is not None:
        _log.warning("OTEL_* variables request telemetry, but none is sent: %s", error)
    return Flush([provider.force_flush for provider in providers]) if providers else None


def _otlp(signal: str, name: str, environment: Mapping[str, str]) -> str:
    """Return an exporter's setting: that of the signal, or the one for all signals."""
    of_signal = environment.get(f"OTEL_EXPORTER_OTLP_{signal}_{name}", "").strip()
    return of_signal or environment.get(f"OTEL_EXPORTER_OTLP_{name}", "").strip()


def _set_up(signals: list[str], environment: Mapping[str, str]) -> list["TracerProvider | MeterProvider"]:
    """Create all providers before setting any, so that an error changes nothing."""
    for signal in signals:
        protocol = _otlp(signal, "PROTOCOL", environment) or PROTOCOL
        if protocol != PROTOCOL:
            raise ConfigError(f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol}; only {PROTOCOL} is supported")
    resource = _resource()
    traces = _tracer_provider(resource) if "TRACES" in signals else None
    measures = _meter_provider(resource) if "METRICS" in signals else None
    if traces is not None:
        trace.set_tracer_provider(traces)
    if measures is not None:
        metrics.set_meter_provider(measures)
    return [provider for provider in (traces, measures) if provider is not None]


def _resource() -> "Resource":
    """Return the service's attributes. Each process is an instance: equal ids would merge their counts."""
    from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, OTELResourceDetector, Resource

    configured = OTELResourceDetector().detect().attributes
    return Resource.create({SERVICE_NAME: SERVICE, SERVICE_INSTANCE_ID: str(uuid.uuid4()), **configured})


def _tracer_provider(resource: "Resource") -> "TracerProvider | None":
    """Return None if the host has set a provider. Stages flush, so the process need not wait at its end."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    logging.getLogger(OTLPSpanExporter.__module__).addFilter(RepeatFilter())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _meter_provider(resource: "Resource") -> "MeterProvider | None":
    """Return None if the host has set a provider."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    if isinstance(metrics.get_meter_provider(), MeterProvider):
        return None
    logging.getLogger(OTLPMetricExporter.__module__).addFilter(RepeatFilter())
    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    return MeterProvider([reader], resource=resource, shutdown_on_exit=False)
