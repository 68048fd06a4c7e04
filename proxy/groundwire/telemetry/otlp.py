"""Send spans, log records and metrics to a collector by OpenTelemetry. Imported only if export is enabled.

Requests never wait for it: records are kept in bounded queues, the oldest is dropped when one is full, and separate
threads send them. A failing collector is logged once, and reported by /readyz for as long as it fails.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import uuid4

import structlog
from opentelemetry import context, trace
from opentelemetry._logs import Logger, LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import Exemplar
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client.core import Metric
from prometheus_client.samples import Sample

from groundwire.config import Telemetry as TelemetrySettings
from groundwire.telemetry.instruments import LOST_TELEMETRY, Instrument, Reading
from groundwire.telemetry.metrics import Metrics, Registry
from groundwire.telemetry.names import ERROR, STATUS_CODE
from groundwire.telemetry.spans import CURRENT, NO_TRACER, Kind, Span, Tracer
from groundwire.wire import Headers, without

log = structlog.get_logger("groundwire.telemetry")

MAX_ATTRIBUTE = 2**16  # characters of an attribute, so that a full queue of captured prompts is bounded
_CLOSE_S = 2.0  # maximum time to send the remaining records; a collector that is down must not delay the shutdown
_SCOPE = "groundwire"
_NS = 1e9
_QUIET = ("opentelemetry.exporter.otlp", "opentelemetry.sdk._shared_internal", "opentelemetry.exporter.http")
_PROPAGATOR = TraceContextTextMapPropagator()
_W3C = frozenset({b"traceparent", b"tracestate"})
_SEVERITIES = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR", "critical": "FATAL"}
_IN_RECORD = frozenset({"event", "level", "timestamp", "trace_id", "span_id"})


class OpenTelemetrySpan(Span):
    """A span that OpenTelemetry records if it is sampled."""

    __slots__ = ("_span",)

    def __init__(self, span: trace.Span) -> None:
        super().__init__(_inject(span).get("traceparent", ""), is_recording=span.is_recording())
        self._span = span

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes."""
        self._span.set_attributes(attributes)

    def fail(self, error: str) -> None:
        """Record an error by its class or status."""
        self._span.set_attribute(ERROR, error)
        self._span.set_status(Status(StatusCode.ERROR))

    def event(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Add an event."""
        self._span.add_event(name, attributes)

    def link(self, traceparent: str) -> None:
        """Link to a span of another trace."""
        parent = _PROPAGATOR.extract({"traceparent": traceparent}, Context())
        linked = trace.get_current_span(parent).get_span_context()
        if linked.is_valid:
            self._span.add_link(linked)

    def propagate(self, headers: Headers) -> Headers:
        """Return request headers with this span's trace context instead of the caller's."""
        ours = tuple((name.encode(), value.encode()) for name, value in _inject(self._span).items())
        return (*without(headers, _W3C), *ours)

    def activate(self) -> Any:
        """Make this the current span, also for libraries that OpenTelemetry instruments."""
        attached = context.attach(trace.set_span_in_context(self._span))
        return super().activate(), attached

    def deactivate(self, token: Any) -> None:
        """Make the previous span the current one again."""
        ours, attached = token
        context.detach(attached)
        super().deactivate(ours)

    def end(self) -> None:
        """End the span."""
        self._span.end()


class OpenTelemetryTracer(Tracer):
    """Start spans with an OpenTelemetry tracer."""

    enabled = True

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    def start(self, name: str, kind: Kind, attributes: Mapping[str, Any]) -> Span:
        """Start a child of the current span."""
        return OpenTelemetrySpan(self._tracer.start_span(name, None, SpanKind[kind.upper()], attributes))

    def start_root(self, name: str, kind: Kind, attributes: Mapping[str, Any], headers: Headers = ()) -> Span:
        """Start a span that continues the trace of these headers, or a new trace."""
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name in _W3C}
        parent = _PROPAGATOR.extract(carrier, Context())
        return OpenTelemetrySpan(self._tracer.start_span(name, parent, SpanKind[kind.upper()], attributes))


class LogExport:
    """Pass events and log lines to an OpenTelemetry logger, with the trace of the span that is current."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger

    def event(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Emit an event."""
        self._logger.emit(event_name=name, attributes=attributes, context=_current())

    def line(self, event: Mapping[str, Any]) -> None:
        """Emit one line of the log; values other than plain ones are sent as JSON."""
        level = str(event.get("level", "info"))
        found = {name: _plain(value) for name, value in event.items() if name not in _IN_RECORD and value is not None}
        self._logger.emit(
            LogRecord(
                timestamp=time.time_ns(),
                context=_current(),
                severity_text=level,
                severity_number=SeverityNumber[_SEVERITIES.get(level, "INFO")],
                body=str(event.get("event")),
                attributes=found,
            )
        )


def _current() -> Context:
    """Return the context of the current span, also if it is the caller's and nothing is recorded on it."""
    return _PROPAGATOR.extract({"traceparent": CURRENT.get().traceparent}, Context())


def _inject(span: trace.Span) -> dict[str, str]:
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, trace.set_span_in_context(span, Context()))
    return carrier


def _plain(value: Any) -> str | int | float | bool:
    return value if isinstance(value, str | int | float | bool) else json.dumps(value, default=str)


@dataclass(slots=True)
class _Series:
    """The samples of one histogram under one set of labels."""

    cumulative: list[int] = field(default_factory=lambda: [0])
    sum: float = 0.0
    exemplars: list[Exemplar] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        if sample.name.endswith("_sum"):
            self.sum = sample.value
        elif sample.name.endswith("_bucket"):
            self.cumulative.append(int(sample.value))
            if (found := sample.exemplar) is not None:
                at, trace, span = float(found.timestamp or 0), found.labels["trace_id"], found.labels["span_id"]
                self.exemplars.append(Exemplar({}, found.value, int(at * _NS), int(span, 16), int(trace, 16)))


class MetricSender:
    """Send the metrics of a registry every `interval` seconds, counted since now, and once more at shutdown."""

    def __init__(
        self, exporter: Any, registry: Registry, resource: Resource, scope: InstrumentationScope, interval: float
    ) -> None:
        self._exporter = exporter
        self._registry = registry
        self._resource = resource
        self._scope = scope
        self._interval = interval
        self._start = time.time_ns()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="groundwire-metrics", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self._send()
        self._send()

    def _send(self) -> None:
        try:
            metrics = [self._convert(*found) for found in self._registry.collect_instruments()]
            scoped = sdk.ScopeMetrics(self._scope, metrics, "")
            self._exporter.export(sdk.MetricsData([sdk.ResourceMetrics(self._resource, [scoped], "")]))
        except Exception as error:  # noqa: BLE001 - the next time may be better
            log.warning("telemetry.metrics_failed", error=type(error).__name__)

    def _convert(self, instrument: Instrument, metric: Metric) -> sdk.Metric:
        now, cumulative = time.time_ns(), sdk.AggregationTemporality.CUMULATIVE
        data: sdk.Gauge | sdk.Histogram | sdk.Sum
        if instrument.kind == "histogram":
            data = sdk.Histogram(self._histograms(instrument, metric.samples, now), cumulative)
        else:
            points = [
                sdk.NumberDataPoint(_attributes(instrument, sample), self._start, now, sample.value)
                for sample in metric.samples
            ]
            data = sdk.Sum(points, cumulative, is_monotonic=True) if instrument.kind == "counter" else sdk.Gauge(points)
        return sdk.Metric(instrument.name, instrument.about, instrument.unit, data)

    def _histograms(self, instrument: Instrument, samples: Iterable[Sample], now: int) -> list[sdk.HistogramDataPoint]:
        found: defaultdict[tuple[tuple[str, str | int], ...], _Series] = defaultdict(_Series)
        for sample in samples:
            found[tuple(_attributes(instrument, sample).items())].add(sample)
        return [
            sdk.HistogramDataPoint(
                dict(attributes),
                self._start,
                now,
                series.cumulative[-1],
                series.sum,
                [upper - lower for lower, upper in pairwise(series.cumulative)],
                instrument.buckets,
                None,  # type: ignore[arg-type]  # prometheus-client keeps no minimum; the field is optional in OTLP
                None,  # type: ignore[arg-type]  # nor a maximum
                series.exemplars,
            )
            for attributes, series in found.items()
        ]

    def shutdown(self) -> None:
        """Send the metrics a last time and stop."""
        self._stop.set()
        self._thread.join()
        self._exporter.shutdown()


def _attributes(instrument: Instrument, sample: Sample) -> dict[str, str | int]:
    """Return the labels of a sample by name; empty ones are left out, and HTTP statuses are numbers."""
    return {
        name: int(value) if name == STATUS_CODE else value
        for name, label in zip(instrument.labels, instrument.prometheus_labels, strict=True)
        if (value := sample.labels[label])
    }


class MonitoredExporter:
    """Wrap the exporter of a signal to count the batches that fail; other attributes are delegated."""

    def __init__(self, exporter: Any, signal: str) -> None:
        self.signal = signal
        self.failures = 0
        self.is_failing = False
        self._exporter = exporter

    def export(self, batch: Any, **options: Any) -> Any:
        """Export a batch, and log a change of state; an exception counts as a failure."""
        result = None
        try:
            result = self._exporter.export(batch, **options)
        finally:
            was_failing, self.is_failing = self.is_failing, getattr(result, "name", None) != "SUCCESS"
            self.failures += self.is_failing
            if self.is_failing and not was_failing:
                log.warning("telemetry.not_sent", signal=self.signal)
            elif was_failing and not self.is_failing:
                log.info("telemetry.sent_again", signal=self.signal, failures=self.failures)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exporter, name)


class Collector:
    """The connection to one collector: a tracer, and a log of events; they do nothing if their signal is disabled.

    Without an address in the settings, the exporters read theirs from the environment.
    """

    def __init__(
        self, settings: TelemetrySettings, version: str, environ: Mapping[str, str], metrics: Metrics | None
    ) -> None:
        for name in _QUIET:  # they would write to standard error for every batch, bypassing the log
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.exporters: list[MonitoredExporter] = []
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
            exporter, scope = self._exporter("metrics", OTLPMetricExporter), InstrumentationScope(_SCOPE, version)
            sender = MetricSender(exporter, metrics.registry, resource, scope, settings.metrics_interval)
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
        made = MonitoredExporter(exporter(f"{self._base}/v1/{signal}" if self._base else None), signal)
        self.exporters.append(made)
        return made

    def failures(self) -> list[Reading]:
        """Return the number of batches that were not accepted, by signal."""
        return [(LOST_TELEMETRY, (each.signal,), each.failures) for each in self.exporters if each.failures]

    def degraded(self) -> str | None:
        """Return a description of the signals that cannot be sent now."""
        failing = sorted(each.signal for each in self.exporters if each.is_failing)
        return f"{', '.join(failing)} cannot be sent" if failing else None

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
