"""An OTLP collector on this machine that records what it receives."""

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Accepts OTLP over HTTP, as far as an exporter needs."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes]] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._kept())
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def _kept(self) -> type[BaseHTTPRequestHandler]:
        requests = self.requests

        class Keep(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                requests.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Tests print nothing."""

        return Keep

    def paths(self) -> set[str]:
        """Return the signals that were received."""
        return {path for path, _ in self.requests}

    def service(self) -> str:
        """Return the sender's name."""
        (name,) = {
            _attributes(part.resource)["service.name"]
            for request in self._traces()
            for part in request.resource_spans
        }
        return name

    def spans(self) -> list[tuple[bool, dict[str, Any]]]:
        """Return every span: whether it is an item's, and its attributes."""
        return [
            (bool(span.parent_span_id), _attributes(span))
            for request in self._traces()
            for part in request.resource_spans
            for scope in part.scope_spans
            for span in scope.spans
        ]

    def items(self) -> Counter[tuple[str, str]]:
        """Count the items' spans by stage and status."""
        fields = [fields for is_item, fields in self.spans() if is_item]
        return Counter((each["stage_name"], each["status"]) for each in fields)

    def counted(self) -> Counter[tuple[str, str]]:
        """Return the items by stage and status in the last metrics."""
        bodies = [body for path, body in self.requests if path == "/v1/metrics"]
        request = ExportMetricsServiceRequest.FromString(bodies[-1])
        points = [
            point
            for part in request.resource_metrics
            for scope in part.scope_metrics
            for metric in scope.metrics
            if metric.name == "ingest.items"
            for point in metric.sum.data_points
        ]
        told = [(_attributes(point), point.as_int) for point in points]
        return Counter({(fields["stage_name"], fields["status"]): count for fields, count in told})

    def _traces(self) -> list[ExportTraceServiceRequest]:
        bodies = [body for path, body in self.requests if path == "/v1/traces"]
        return [ExportTraceServiceRequest.FromString(body) for body in bodies]


def _attributes(part: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in part.attributes}


@contextlib.contextmanager
def running_collector() -> Iterator[Collector]:
    """Run a collector for a while."""
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        collector.server.server_close()
        thread.join(timeout=10)
