"""Send spans, log records and metrics to a collector by OTLP over HTTP. Imported only if export is enabled.

Requests never wait for it: records are kept in bounded queues, the oldest is dropped when one is full, and separate
threads send them. A failing collector is logged once, and reported by /readyz for as long as it fails.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import structlog
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from groundwire.config import Telemetry as TelemetrySettings
from groundwire.telemetry.metrics import Metrics
from groundwire.telemetry.otlp_metrics import Converter
from groundwire.telemetry.spans import NO_TRACER, Tracer
from groundwire.telemetry.tracing import LogExport, OpenTelemetryTracer

log = structlog.get_logger("groundwire.telemetry")

_CLOSE_S = 2.0  # maximum time to send the remaining records; a collector that is down must not delay the shutdown
_SCOPE = "groundwire"
MAX_ATTRIBUTE = 2**16  # characters of an attribute, so that a full queue of captured prompts is bounded
_QUIET = ("opentelemetry.exporter.otlp", "opentelemetry.sdk._shared_internal", "opentelemetry.exporter.http")


class ExportHealth:
    """Failures of export by signal. `failures` counts batches since the start."""

    def __init__(self) -> None:
        self.failures: dict[str, int] = {}
        self._failing: set[str] = set()

    def record(self, signal: str, *, accepted: bool) -> None:
        """Record the result of one batch, and log a change of state."""
        if accepted:
            if signal in self._failing:
                self._failing.discard(signal)
                log.info("telemetry.sent_again", signal=signal, failures=self.failures[signal])
            return
        self.failures[signal] = self.failures.get(signal, 0) + 1
        if signal not in self._failing:
            self._failing.add(signal)
            log.warning("telemetry.not_sent", signal=signal)

    def degraded(self) -> str | None:
        """Return a description of the signals that cannot be sent now."""
        return f"{', '.join(sorted(self._failing))} cannot be sent" if self._failing else None


class MonitoredExporter:
    """Wrap an exporter to record its failures; other attributes are delegated."""

    def __init__(self, exporter: Any, signal: str, health: ExportHealth) -> None:
        self._exporter = exporter
        self._signal = signal
        self._health = health

    def export(self, batch: Any, **options: Any) -> Any:
        """Export a batch; an exception counts as a failure."""
        result = None
        try:
            result = self._exporter.export(batch, **options)
        finally:
            self._health.record(self._signal, accepted=getattr(result, "name", None) == "SUCCESS")
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exporter, name)


class MetricSender:
    """Send metrics every `interval` seconds, and once more at shutdown."""

    def __init__(self, exporter: Any, collect: Callable[[], Any], interval: float) -> None:
        self._exporter = exporter
        self._collect = collect
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="groundwire-metrics", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self._send()
        self._send()

    def _send(self) -> None:
        try:
            self._exporter.export(self._collect())
        except Exception as error:  # noqa: BLE001 - the next time may be better
            log.warning("telemetry.metrics_failed", error=type(error).__name__)

    def shutdown(self) -> None:
        """Send the metrics a last time and stop."""
        self._stop.set()
        self._thread.join()
        self._exporter.shutdown()


class Collector:
    """The connection to one collector: a tracer, and a log of events; they do nothing if their signal is disabled.

    Without an address in the settings, the exporters read theirs from the environment.
    """

    def __init__(
        self, settings: TelemetrySettings, version: str, environ: Mapping[str, str], metrics: Metrics | None
    ) -> None:
        for name in _QUIET:  # they would write to standard error for every batch, bypassing the log
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.health = ExportHealth()
        self.tracer: Tracer = NO_TRACER
        self.events: LogExport | None = None
        self._closing: list[Callable[[], None]] = []
        self._base = settings.otlp_endpoint.rstrip("/") if settings.otlp_endpoint else None
        resource = _resource(settings, version, environ)
        if "traces" in settings.otlp_signals:
            self._send_traces(resource, version, settings.sample_ratio)
        if "logs" in settings.otlp_signals:
            self._send_logs(resource, version)
        if "metrics" in settings.otlp_signals and metrics is not None:
            collect = Converter(metrics.registry, resource, InstrumentationScope(_SCOPE, version))
            sender = MetricSender(self._exporter("metrics", OTLPMetricExporter), collect, settings.metrics_interval)
            self._closing.append(sender.shutdown)

    def _send_traces(self, resource: Resource, version: str, ratio: float) -> None:
        limits = SpanLimits(max_attribute_length=MAX_ATTRIBUTE)
        sampler = ParentBasedTraceIdRatio(ratio)
        provider = TracerProvider(sampler, resource, shutdown_on_exit=False, span_limits=limits)
        provider.add_span_processor(BatchSpanProcessor(self._exporter("traces", OTLPSpanExporter)))
        self.tracer = OpenTelemetryTracer(provider.get_tracer(_SCOPE, version))
        self._closing.append(provider.shutdown)

    def _send_logs(self, resource: Resource, version: str) -> None:
        provider = LoggerProvider(resource, shutdown_on_exit=False)
        provider.add_log_record_processor(BatchLogRecordProcessor(self._exporter("logs", OTLPLogExporter)))
        self.events = LogExport(provider.get_logger(_SCOPE, version))
        self._closing.append(provider.shutdown)

    def _exporter(self, signal: str, exporter: Callable[..., Any]) -> Any:
        return MonitoredExporter(exporter(f"{self._base}/v1/{signal}" if self._base else None), signal, self.health)

    def close(self) -> None:
        """Send the remaining records, for two seconds at most."""
        closing = [threading.Thread(target=each, daemon=True) for each in self._closing]
        for each in closing:
            each.start()
        until = time.monotonic() + _CLOSE_S
        for each in closing:
            each.join(max(0.0, until - time.monotonic()))


def _resource(settings: TelemetrySettings, version: str, environ: Mapping[str, str]) -> Resource:
    """Describe the sender: settings, then OTEL_RESOURCE_ATTRIBUTES; OTEL_SERVICE_NAME overrides both."""
    given = {"service.name": settings.service_name, "service.version": version, "service.instance.id": uuid4().hex}
    if name := environ.get("OTEL_SERVICE_NAME"):
        given["service.name"] = name
    return Resource.create({**given, **settings.resource})
