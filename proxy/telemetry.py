"""structlog and OpenTelemetry, set up once; the names of spans, events and attributes stand here and nowhere else.

Names follow OpenTelemetry's GenAI semantic conventions 1.41 (spans, and the `gen_ai.evaluation.result` event); ours are
under `grounding.`. Neither logs nor traces hold text of requests or answers unless `capture_content` is set, nor a key.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from opentelemetry import trace
from opentelemetry.context import Context as TraceContext
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from proxy.config import Telemetry as TelemetrySettings
from proxy.types import Headers, Report

_PROPAGATOR = TraceContextTextMapPropagator()
_W3C = frozenset({b"traceparent", b"tracestate"})
EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "grounding"
_CLOSE_S = 2.0  # at most for sending what is left: a receiver that is down must not hold up the end


def short_hash(text: str) -> str:
    """The first 12 hexadecimal digits of a text's SHA-256: names a text in a log without showing it (QU5)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def configure_logs(settings: TelemetrySettings) -> None:
    """One JSON line per event on standard error, with the trace it belongs to."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_trace,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if settings.capture_content else _WITHOUT_TEXT,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _places(exc_info: structlog.typing.ExcInfo) -> str:
    """An exception, and those it came from, by class and places; its text may quote what it failed on."""
    lines: list[str] = []
    error: BaseException | None = exc_info[1]
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        lines += [type(error).__name__, *(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)


_WITHOUT_TEXT = structlog.processors.ExceptionRenderer(_places)


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The spans and events of an exchange. With no tracer nothing is recorded and trace headers pass untouched."""

    tracer: trace.Tracer | None = None
    events: Any = None  # an opentelemetry Logger
    capture_content: bool = False
    close: Callable[[], None] = lambda: None

    @contextmanager
    def server_span(self, method: str, route: str, headers: Headers) -> Iterator[Span]:
        """The span of one HTTP request, a child of the caller's span if it names one."""
        if self.tracer is None:
            yield trace.INVALID_SPAN
            return
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name in _W3C}
        attributes = {"http.request.method": method, "http.route": route, "url.path": route}
        with self.tracer.start_as_current_span(
            f"{method} {route}", _PROPAGATOR.extract(carrier), SpanKind.SERVER, attributes
        ) as span:
            yield span

    def upstream_span(self, operation: str, provider: str, upstream: str, body: Mapping[str, Any]) -> Span:
        """The span of one call of a model server, which lasts until its last byte; the caller ends it."""
        if self.tracer is None:
            return trace.INVALID_SPAN
        model = str(body.get("model", ""))
        given = {f"gen_ai.request.{name}": body.get(field) for name, field in _REQUEST_ATTRIBUTES.items()}
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.request.stream": body.get("stream") is True,
            "grounding.upstream": upstream,
            **{name: value for name, value in given.items() if isinstance(value, (int, float, str))},
        }
        if self.capture_content and isinstance(body.get("messages"), list):
            attributes["gen_ai.input.messages"] = str(body["messages"])
        return self.tracer.start_span(f"{operation} {model}", kind=SpanKind.CLIENT, attributes=attributes)

    def verification_span(self, report_id: str) -> Span:
        """The span of verifying one answer; the caller ends it."""
        if self.tracer is None:
            return trace.INVALID_SPAN
        return self.tracer.start_span("grounding verify", attributes={"grounding.id": report_id})

    def propagated(self, headers: Headers, span: Span) -> Headers:
        """Request headers with the W3C trace context of `span` in the place of the caller's."""
        if self.tracer is None:
            return headers
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(span, TraceContext()))
        ours = tuple((name.encode(), value.encode()) for name, value in carrier.items())
        return (*(pair for pair in headers if pair[0] not in _W3C), *ours)

    def answered(
        self, span: Span, id_: str | None, model: str | None, reasons: tuple[str, ...], usage: Mapping[str, Any]
    ) -> None:
        """Sets on an upstream span what its answer says of itself."""
        found = {
            "gen_ai.response.id": id_,
            "gen_ai.response.model": model,
            "gen_ai.response.finish_reasons": list(reasons) or None,
            "gen_ai.usage.input_tokens": usage.get("prompt_tokens"),
            "gen_ai.usage.output_tokens": usage.get("completion_tokens"),
        }
        span.set_attributes({name: value for name, value in found.items() if value is not None})

    def evaluated(self, span: Span, report: Report, response_id: str | None) -> None:
        """Records the evaluation result of one answer, on its verification span and as a log event."""
        if self.tracer is None:
            return
        found = {
            "gen_ai.evaluation.name": EVALUATION_NAME,
            "gen_ai.evaluation.score.value": report.score,
            "gen_ai.evaluation.score.label": report.verdict,
            "gen_ai.evaluation.explanation": ", ".join(report.flags) or None,
            "gen_ai.response.id": response_id,
            "error.type": report.degraded[0][1] if report.degraded else None,
            "grounding.id": report.id,
            "grounding.status": report.status,
            "grounding.flags": list(report.flags),
            "grounding.claims.total": report.coverage.claims_total if report.coverage else None,
            "grounding.claims.checked": report.coverage.claims_checked if report.coverage else None,
        }
        attributes = {name: value for name, value in found.items() if value is not None}
        span.set_attributes(attributes)
        span.add_event(EVALUATION, attributes)
        if self.events is not None:
            context = trace.set_span_in_context(span)
            self.events.emit(event_name=EVALUATION, attributes=attributes, context=context)

    def failed(self, span: Span, error: BaseException) -> None:
        """Marks a span as failed by an error's class; its text may hold an address and stays out."""
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(Status(StatusCode.ERROR))


_REQUEST_ATTRIBUTES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "choice.count": "n",
    "seed": "seed",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
}


def build_telemetry(settings: TelemetrySettings) -> Telemetry:
    """Telemetry that exports by OTLP over HTTP when an endpoint is configured, and otherwise records nothing."""
    if settings.otlp_endpoint is None:
        return Telemetry()
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    endpoint = settings.otlp_endpoint.rstrip("/")
    resource = Resource.create({"service.name": settings.service_name})
    spans = TracerProvider(resource=resource)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    logs = LoggerProvider(resource=resource)
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{endpoint}/v1/logs")))

    def close() -> None:
        closing = [threading.Thread(target=each.shutdown, daemon=True) for each in (spans, logs)]
        for each in closing:
            each.start()
        until = time.monotonic() + _CLOSE_S
        for each in closing:
            each.join(max(0.0, until - time.monotonic()))

    return Telemetry(spans.get_tracer("groundwire"), logs.get_logger("groundwire"), settings.capture_content, close)
