"""Record requests, model calls, verifications and jobs.

Neither spans nor metrics contain text of requests or answers unless `capture_content` is set, and never a key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from groundwire.report import Report
from groundwire.telemetry.calls import Recording, UpstreamCall
from groundwire.telemetry.content import short_hash
from groundwire.telemetry.metrics import Metrics
from groundwire.telemetry.names import (
    CLAIMS,
    CONVERSATION,
    EDITIONS,
    ERROR,
    EVALUATION,
    EVALUATION_EXPLANATION,
    EVALUATION_LABEL,
    EVALUATION_NAME,
    EVALUATION_SCORE,
    FLAGS,
    GROUNDING_ID,
    JOB,
    METHOD,
    RESPONSE_ID,
    SOURCES,
    STAGE,
    STAGE_EVENT,
    STATUS,
    STATUS_CODE,
    SUBJECT,
    VERIFY_SPAN,
    GenAINames,
    Purpose,
)
from groundwire.telemetry.served import ABOUT, PROPAGATOR, Served, exemplar_of
from groundwire.wire import Headers

_EVALUATED = "grounding"


def _nothing() -> None:
    """Do nothing."""


def _well() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The entry point of all recording. Without a tracer there are no spans, and trace headers pass unchanged.

    `start` starts background measurements, `close` sends the remaining records; `degraded` describes a failure of
    export, if any.
    """

    tracer: trace.Tracer | None = None
    events: Any = None  # an opentelemetry Logger
    capture_content: bool = False
    close: Callable[[], None] = _nothing
    metrics: Metrics | None = None
    names: GenAINames = EDITIONS["1.41"]
    start: Callable[[], None] = _nothing
    degraded: Callable[[], str | None] = _well

    def server_span(self, method: str, route: str, headers: Headers, *, traced: bool = True) -> Served:
        """Return the context manager of one HTTP request; its span, if traced, continues the caller's trace."""
        return Served(self.tracer if traced else None, self.metrics, method, route, headers)

    def about(self, session: str | None, subject: str | None) -> None:
        """Record the session, and a digest of the subject, on the current span and on later ones in its context."""
        if self.tracer is not None:
            found = {CONVERSATION: session, SUBJECT: short_hash(subject) if subject else None}
            ABOUT.set({name: value for name, value in found.items() if value})
            trace.get_current_span().set_attributes(ABOUT.get())

    def upstream_call(
        self, operation: str, provider: str, upstream: str, body: Mapping[str, Any], purpose: Purpose = "answer"
    ) -> UpstreamCall:
        """Start recording one call of a model server; the caller must end it."""
        recording = Recording(self.tracer, self.metrics, self.names, capture_content=self.capture_content)
        return UpstreamCall(recording, operation, provider, upstream, body, purpose)

    @contextmanager
    def verification(self, report_id: str) -> Iterator[Span]:
        """Open the span of verifying one answer; spans created inside are its children."""
        if self.tracer is None:
            yield trace.INVALID_SPAN
            return
        attributes = {GROUNDING_ID: report_id, **ABOUT.get()}
        with _within(self.tracer.start_span(VERIFY_SPAN, attributes=attributes)) as span:
            yield span

    def evaluated(self, span: Span, report: Report, response_id: str | None) -> None:
        """Record the result of verifying one answer: in metrics, on its span, and as an event in the log."""
        if self.metrics is not None:
            self.metrics.evaluated(report, exemplar_of(span))
        if self.tracer is None:
            return
        attributes = _evaluation(report, response_id)
        if span.is_recording():
            span.set_attributes(attributes)
            span.add_event(EVALUATION, attributes)
            for stage in _stages(report):
                span.add_event(STAGE_EVENT, stage)
            if self.capture_content:
                span.set_attributes(_content(report))
        if self.events is not None:
            self.events.emit(event_name=EVALUATION, attributes=attributes, context=trace.set_span_in_context(span))

    def admitted(self, accepted: int, rejected: int) -> None:
        """Count the decisions of the memory gate."""
        if self.metrics is not None:
            for outcome, count in (("accepted", accepted), ("rejected", rejected)):
                if count:
                    self.metrics.facts.add((outcome,), count)

    def origin(self) -> str | None:
        """Return the current W3C trace context, for work that is done later; None if there is none."""
        carrier: dict[str, str] = {}
        PROPAGATOR.inject(carrier)
        return carrier.get("traceparent")

    @contextmanager
    def job(self, kind: str, id_: str) -> Iterator[None]:
        """Record one attempt at a job as a separate trace, counted by its outcome."""
        outcome = "failed"
        try:
            if self.tracer is None:
                yield
            else:
                attributes = {JOB: kind, GROUNDING_ID: id_}
                with _within(self.tracer.start_span(f"job {kind}", Context(), SpanKind.CONSUMER, attributes)):
                    yield
            outcome = "done"
        finally:
            if self.metrics is not None:
                self.metrics.jobs.add((kind, outcome))

    def goes_back_to(self, origin: str | None) -> None:
        """Link the current span to the trace that created the job."""
        if self.tracer is not None and origin is not None:
            left = trace.get_current_span(PROPAGATOR.extract({"traceparent": origin}, Context())).get_span_context()
            if left.is_valid:
                trace.get_current_span().add_link(left)

    @contextmanager
    def webhook(self, id_: str) -> Iterator[Posted]:
        """Record the delivery of one report, without its address."""
        if self.tracer is None:
            yield Posted(trace.INVALID_SPAN)
            return
        attributes = {METHOD: "POST", GROUNDING_ID: id_}
        with _within(self.tracer.start_span("POST webhook", None, SpanKind.CLIENT, attributes)) as span:
            yield Posted(span)


@dataclass(frozen=True, slots=True)
class Posted:
    """A report being delivered to the webhook."""

    span: Span

    @property
    def headers(self) -> Mapping[str, str]:
        """The W3C trace context of this delivery."""
        carrier: dict[str, str] = {}
        if self.span.get_span_context().is_valid:
            PROPAGATOR.inject(carrier)
        return carrier

    def answered(self, status: int) -> None:
        """Record the status that the receiver returned."""
        self.span.set_attribute(STATUS_CODE, status)
        if status >= 400:
            self.span.set_attribute(ERROR, str(status))
            self.span.set_status(Status(StatusCode.ERROR))


@contextmanager
def _within(span: Span) -> Iterator[Span]:
    """Make a span the current one. An error is recorded by its class only, because its text may quote private data."""
    with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield span
        except BaseException as error:
            span.set_attribute(ERROR, type(error).__name__)
            span.set_status(Status(StatusCode.ERROR))
            raise


def _evaluation(report: Report, response_id: str | None) -> dict[str, Any]:
    found = {
        EVALUATION_NAME: _EVALUATED,
        EVALUATION_SCORE: report.score,
        EVALUATION_LABEL: report.verdict,
        EVALUATION_EXPLANATION: ", ".join(report.flags) or None,
        RESPONSE_ID: response_id,
        ERROR: report.degraded[0][1] if report.degraded else None,
        GROUNDING_ID: report.id,
        STATUS: report.status,
        FLAGS: list(report.flags),
        "grounding.claims.total": report.coverage.claims_total if report.coverage else None,
        "grounding.claims.checked": report.coverage.claims_checked if report.coverage else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _stages(report: Report) -> Iterator[dict[str, int | float | str]]:
    """Yield the duration of each stage: context, claims, verification, and each turn of the cascade within it."""
    for name, ms in report.timing_ms:
        if name != "total":
            yield {STAGE: name, "grounding.stage.ms": round(ms, 3)}
    for used in report.stages:
        yield {
            STAGE: used.stage,
            "grounding.stage.ms": round(used.ms, 3),
            "grounding.stage.claims": used.claims,
            "grounding.stage.calls": used.calls,
        }


def _content(report: Report) -> dict[str, str]:
    """Return the claims with their verdicts, and the sources, for spans if content is captured."""
    claims = [
        {
            "text": judgement.claim.text,
            "label": judgement.verdict.label,
            "verifier": judgement.verdict.verifier,
            "reason": judgement.verdict.reason,
            "evidence": [citation.text for citation in judgement.verdict.citations],
        }
        for choice in report.choices
        for judgement in choice.judgements
    ]
    sources = [{"id": source.id, "kind": source.kind, "text": source.text} for source in report.sources]
    return {CLAIMS: json.dumps(claims, ensure_ascii=False), SOURCES: json.dumps(sources, ensure_ascii=False)}
