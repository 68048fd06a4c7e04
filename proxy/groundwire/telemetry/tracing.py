"""Spans and log records by OpenTelemetry's interfaces. Imported only if there is a collector."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from opentelemetry import context, trace
from opentelemetry._logs import Logger, LogRecord, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from groundwire.telemetry.names import ERROR
from groundwire.telemetry.spans import CURRENT, Kind, Span, Tracer
from groundwire.wire import Headers

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
        return (*(pair for pair in headers if pair[0] not in _W3C), *ours)

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
