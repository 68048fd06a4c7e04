"""The spans of an exchange, and the event that tells what came of verifying its answer.

Names follow OpenTelemetry's GenAI semantic conventions 1.41 (spans, and the `gen_ai.evaluation.result` event); ours are
under `grounding.`. Spans hold no text of requests or answers unless `capture_content` is set, and never a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context as TraceContext
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from proxy.types import Headers, Report

_PROPAGATOR = TraceContextTextMapPropagator()
_W3C = frozenset({b"traceparent", b"tracestate"})
EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "grounding"
CLIENT = "grounding.client"


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

    def passed_over(self, span: Span, outcome: str) -> None:
        """Marks the span of an attempt that came to nothing and that another one follows."""
        span.set_attribute("error.type", outcome)
        span.set_status(Status(StatusCode.ERROR))

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
