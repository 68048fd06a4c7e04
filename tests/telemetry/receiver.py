"""A collector for the tests: it decodes the protobufs that it is sent over HTTP, or fails as configured."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver(ThreadingHTTPServer):
    """The decoded telemetry. `status` is its answer to everything; while `may_answer` is not set it answers nothing."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = threading.Event()
        self.headers: list[Mapping[str, str]] = []
        self.raw = b""
        self._traces: list[Any] = []
        self._logs: list[Any] = []
        self._metrics: list[Any] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> list[Any]:
        """All received spans."""
        return [
            span
            for sent in self._traces
            for each in sent.resource_spans
            for scope in each.scope_spans
            for span in scope.spans
        ]

    def span(self, name: str) -> Any:
        """The one span of a name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    @property
    def records(self) -> list[Any]:
        """All received log records."""
        return [
            record
            for sent in self._logs
            for each in sent.resource_logs
            for scope in each.scope_logs
            for record in scope.log_records
        ]

    @property
    def metrics(self) -> dict[str, Any]:
        """Every metric by name, as last received."""
        return {
            metric.name: metric
            for sent in self._metrics
            for each in sent.resource_metrics
            for scope in each.scope_metrics
            for metric in scope.metrics
        }

    @property
    def resource(self) -> dict[str, Any]:
        """The traces' resource."""
        return plain(self._traces[0].resource_spans[0].resource.attributes)

    def take(self, path: str, raw: bytes) -> None:
        """Decode a posted body."""
        self.raw += raw
        kinds = {
            "/v1/traces": (self._traces, ExportTraceServiceRequest),
            "/v1/logs": (self._logs, ExportLogsServiceRequest),
            "/v1/metrics": (self._metrics, ExportMetricsServiceRequest),
        }
        kept, kind = kinds[path]
        kept.append(kind.FromString(raw))


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        self.server.headers.append(dict(self.headers))
        self.server.asked.set()
        self.server.may_answer.wait(60)
        if self.server.status == 200:
            self.server.take(self.path, raw)
        self.send_response(self.server.status)
        self.end_headers()


@contextmanager
def receiving() -> Iterator[Receiver]:
    """The receiver, on a free port."""
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.may_answer.set()
            server.shutdown()


def plain(pairs: Any) -> dict[str, Any]:
    """OTLP's key-value pairs as a dictionary."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


def number(point: Any) -> float:
    """The value of a number's data point, integer or float."""
    return float(getattr(point, point.WhichOneof("value")))
