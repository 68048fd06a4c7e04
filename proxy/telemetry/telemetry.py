"""What the house tells: requests, calls of models, verifications, jobs. Here is decided what is recorded of them.

Neither spans nor metrics hold text of requests or answers unless `capture_content` is set, and never a key.
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

from proxy.telemetry.calls import Recording, UpstreamCall
from proxy.telemetry.content import short_hash
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.names import (
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
from proxy.telemetry.served import ABOUT, PROPAGATOR, Served, exemplar_of
from proxy.types import Headers, Report

_EVALUATED = "grounding"


def _nothing() -> None:
    """Does nothing."""


def _well() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Where everything is recorded. With no tracer there are no spans, and trace headers pass untouched.

    `start` begins with what runs beside everything, `close` sends what is left; `degraded` says what is wrong with
    sending, if anything.
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
        """One HTTP request, to be entered; its span, where it is traced, is a child of the caller's if it names one."""
        return Served(self.tracer if traced else None, self.metrics, method, route, headers)

    def about(self, session: str | None, subject: str | None) -> None:
        """Name the session, and the subject by a digest, on the current span and those that follow in its context."""
        if self.tracer is not None:
            found = {CONVERSATION: session, SUBJECT: short_hash(subject) if subject else None}
            ABOUT.set({name: value for name, value in found.items() if value})
            trace.get_current_span().set_attributes(ABOUT.get())

    def upstream_call(
        self, operation: str, provider: str, upstream: str, body: Mapping[str, Any], purpose: Purpose = "answer"
    ) -> UpstreamCall:
        """One call of a model server, which begins now; whoever makes it ends it."""
        recording = Recording(self.tracer, self.metrics, self.names, capture_content=self.capture_content)
        return UpstreamCall(recording, operation, provider, upstream, body, purpose)

    @contextmanager
    def verification(self, report_id: str) -> Iterator[Span]:
        """The span of verifying one answer, to which belongs all that is done inside."""
        if self.tracer is None:
            yield trace.INVALID_SPAN
            return
        attributes = {GROUNDING_ID: report_id, **ABOUT.get()}
        with _within(self.tracer.start_span(VERIFY_SPAN, attributes=attributes)) as span:
            yield span

    def evaluated(self, span: Span, report: Report, response_id: str | None) -> None:
        """Records what came of verifying one answer: counted, on its span, and as an event in the log."""
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
        """Counts facts that came to the memory gate."""
        if self.metrics is not None:
            for outcome, count in (("accepted", accepted), ("rejected", rejected)):
                if count:
                    self.metrics.facts.add((outcome,), count)

    def origin(self) -> str | None:
        """The W3C trace context of what is done just now, for work that is done later; None when there is none."""
        carrier: dict[str, str] = {}
        PROPAGATOR.inject(carrier)
        return carrier.get("traceparent")

    @contextmanager
    def job(self, kind: str, id_: str) -> Iterator[None]:
        """One attempt at a job: a trace of its own, counted by how it ends."""
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
        """Links what is done just now to the trace that it was left for later in."""
        if self.tracer is not None and origin is not None:
            left = trace.get_current_span(PROPAGATOR.extract({"traceparent": origin}, Context())).get_span_context()
            if left.is_valid:
                trace.get_current_span().add_link(left)

    @contextmanager
    def webhook(self, id_: str) -> Iterator[Posted]:
        """The delivery of one report; its address stays out of the record."""
        if self.tracer is None:
            yield Posted(trace.INVALID_SPAN)
            return
        attributes = {METHOD: "POST", GROUNDING_ID: id_}
        with _within(self.tracer.start_span("POST webhook", None, SpanKind.CLIENT, attributes)) as span:
            yield Posted(span)


@dataclass(frozen=True, slots=True)
class Posted:
    """A report on its way to the webhook."""

    span: Span

    @property
    def headers(self) -> Mapping[str, str]:
        """The W3C trace context of this delivery."""
        carrier: dict[str, str] = {}
        if self.span.get_span_context().is_valid:
            PROPAGATOR.inject(carrier)
        return carrier

    def answered(self, status: int) -> None:
        """The receiver answered with this status."""
        self.span.set_attribute(STATUS_CODE, status)
        if status >= 400:
            self.span.set_attribute(ERROR, str(status))
            self.span.set_status(Status(StatusCode.ERROR))


@contextmanager
def _within(span: Span) -> Iterator[Span]:
    """Makes a span that of all that is done inside. An error marks it by its class; its text may quote anything."""
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
    """What each stage took: context, claims, judging, and within that each turn of the cascade, the model's too."""
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
    """The claims with what was decided on them, and the sources' names; only where content may be recorded."""
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
