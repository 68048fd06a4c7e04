"""Record requests, model calls, verifications and jobs.

Neither spans nor metrics contain text of requests or answers unless `capture_content` is set, and never a key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groundwire.report import Report
from groundwire.telemetry import names as n
from groundwire.telemetry.calls import Recorder, UpstreamCall
from groundwire.telemetry.genai import short_hash
from groundwire.telemetry.metrics import LoopLag
from groundwire.telemetry.scores import ORIGIN, Scores
from groundwire.telemetry.served import ABOUT, Served
from groundwire.telemetry.spans import CURRENT, NO_TRACER, Span, active
from groundwire.wire import Headers

if TYPE_CHECKING:
    from groundwire.telemetry.otlp import Collector
    from groundwire.telemetry.tracing import LogExport


@dataclass(frozen=True, slots=True)
class Telemetry(Recorder):
    """The entry point of all recording. Without a collector there are no spans, and trace headers pass unchanged.

    `events` passes events and log lines to the collector, if it accepts them.
    """

    events: LogExport | None = None
    lag: LoopLag | None = None
    collector: Collector | None = None
    scores: Scores | None = None

    def start(self) -> None:
        """Start background measurements on the running event loop."""
        if self.lag is not None:
            self.lag.start()

    def close(self) -> None:
        """Stop background measurements and send the remaining records."""
        if self.lag is not None:
            self.lag.stop()
        if self.collector is not None:
            self.collector.close()
        if self.scores is not None:
            self.scores.close()

    def degraded(self) -> str | None:
        """Return a description of a failure of export; None if there is none."""
        collector = self.collector.health.degraded() if self.collector else None
        scores = self.scores.degraded() if self.scores else None
        return "; ".join(filter(None, (collector, scores))) or None

    def server_span(self, method: str, route: str, headers: Headers, *, traced: bool = True) -> Served:
        """Return the context manager of one HTTP request; its span, if traced, continues the caller's trace."""
        return Served(self.tracer if traced else NO_TRACER, self.metrics, method, route, headers)

    def about(self, session: str | None, subject: str | None) -> None:
        """Record the session, and a digest of the subject, on the current span and on later ones in its context."""
        if self.tracer.enabled:
            found = {n.CONVERSATION: session, n.SUBJECT: short_hash(subject) if subject else None}
            ABOUT.set({name: value for name, value in found.items() if value})
            CURRENT.get().set(ABOUT.get())

    def upstream_call(
        self, operation: str, provider: str, upstream: str, body: Mapping[str, Any], purpose: n.Purpose = "answer"
    ) -> UpstreamCall:
        """Start recording one call of a model server; the caller must end it."""
        return UpstreamCall(self, operation, provider, upstream, body, purpose)

    @contextmanager
    def verification(self, report_id: str) -> Iterator[Span]:
        """Open the span of verifying one answer; spans created inside are its children."""
        attributes = {n.GROUNDING_ID: report_id, **ABOUT.get()}
        with active(self.tracer.start(n.VERIFY_SPAN, "internal", attributes)) as span:
            yield span

    def evaluated(self, span: Span, report: Report, response_id: str | None) -> None:
        """Record the result of verifying one answer: in metrics, on its span, and as an event in the log."""
        if self.metrics is not None:
            self.metrics.evaluated(report, span)
        if self.scores is not None:
            self.scores.add(report, span.traceparent)
        if not self.tracer.enabled:
            return
        attributes = _evaluation(report, response_id)
        if span.is_recording:
            span.set(attributes)
            span.event(n.EVALUATION, attributes)
            for stage in _stages(report):
                span.event(n.STAGE_EVENT, stage)
            if self.capture_content:
                span.set(_content(report))
        if self.events is not None:
            self.events.event(n.EVALUATION, attributes)

    def admitted(self, accepted: int, rejected: int) -> None:
        """Count the decisions of the memory gate."""
        if self.metrics is not None:
            for outcome, count in (("accepted", accepted), ("rejected", rejected)):
                if count:
                    self.metrics.facts.labels(outcome).inc(count)

    def origin(self) -> str | None:
        """Return the current W3C trace context, for work that is done later; None if there is none."""
        return CURRENT.get().traceparent or None

    @contextmanager
    def job(self, kind: str, id_: str) -> Iterator[None]:
        """Record one attempt at a job as a separate trace, counted by its outcome."""
        outcome = "failed"
        try:
            with active(self.tracer.start_root(f"job {kind}", "consumer", {n.JOB: kind, n.GROUNDING_ID: id_})):
                yield
            outcome = "done"
        finally:
            if self.metrics is not None:
                self.metrics.jobs.labels(kind, outcome).inc()

    def goes_back_to(self, origin: str | None) -> None:
        """Link the current span to the trace that created the job."""
        ORIGIN.set(origin or "")
        if origin is not None:
            CURRENT.get().link(origin)

    @contextmanager
    def webhook(self, id_: str) -> Iterator[Posted]:
        """Record the delivery of one report, without its address."""
        attributes = {n.METHOD: "POST", n.GROUNDING_ID: id_}
        with active(self.tracer.start("POST webhook", "client", attributes)) as span:
            yield Posted(span)


@dataclass(frozen=True, slots=True)
class Posted:
    """A report being delivered to the webhook."""

    span: Span

    @property
    def headers(self) -> Mapping[str, str]:
        """The W3C trace context of this delivery."""
        return {name.decode(): value.decode() for name, value in self.span.propagate(())}

    def answered(self, status: int) -> None:
        """Record the status that the receiver returned."""
        self.span.set({n.STATUS_CODE: status})
        if status >= 400:
            self.span.fail(str(status))


def _evaluation(report: Report, response_id: str | None) -> dict[str, Any]:
    found = {
        n.EVALUATION_NAME: "grounding",
        n.EVALUATION_SCORE: report.score,
        n.EVALUATION_LABEL: report.verdict,
        n.EVALUATION_EXPLANATION: ", ".join(report.flags) or None,
        n.RESPONSE_ID: response_id,
        n.ERROR: report.degraded[0][1] if report.degraded else None,
        n.GROUNDING_ID: report.id,
        n.STATUS: report.status,
        n.FLAGS: list(report.flags),
        "grounding.claims.total": report.coverage.claims_total if report.coverage else None,
        "grounding.claims.checked": report.coverage.claims_checked if report.coverage else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _stages(report: Report) -> Iterator[dict[str, int | float | str]]:
    """Yield the duration of each stage: context, claims, verification, and each turn of the cascade within it."""
    for name, ms in report.timing_ms:
        if name != "total":
            yield {n.STAGE: name, "grounding.stage.ms": round(ms, 3)}
    for used in report.stages:
        yield {
            n.STAGE: used.stage,
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
    return {n.CLAIMS: json.dumps(claims, ensure_ascii=False), n.SOURCES: json.dumps(sources, ensure_ascii=False)}
