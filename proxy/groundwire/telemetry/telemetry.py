"""Record requests, model calls, verifications and jobs, and write logs: one JSON line per event on standard error.

Neither spans, metrics nor logs contain text of requests or answers unless `capture_content` is set, and never a key.
prometheus-client and OpenTelemetry are loaded only if they are used.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import structlog

from groundwire.config import Telemetry as TelemetrySettings
from groundwire.errors import ConfigError
from groundwire.report import Report
from groundwire.telemetry import names as n
from groundwire.telemetry.instruments import SCORES_LOST
from groundwire.telemetry.requests import EXCHANGE_ATTRIBUTES, Recorder, short_hash
from groundwire.telemetry.scores import ORIGIN, Scores, build_scores
from groundwire.telemetry.spans import CURRENT, NO_TRACER, Span, active

if TYPE_CHECKING:
    from groundwire.telemetry.metrics import LoopLag, Metrics
    from groundwire.telemetry.otlp import Collector, LogExport


log = structlog.get_logger("groundwire.telemetry")

INSTALL = "pip install 'groundwire[telemetry]'"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


@dataclass(frozen=True, slots=True)
class Telemetry(Recorder):
    """The entry point of all recording. Without a collector there are no spans, and trace headers pass unchanged.

    `events` passes events and log lines to the collector.
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
        collector = self.collector.degraded() if self.collector else None
        scores = self.scores.degraded() if self.scores else None
        return "; ".join(filter(None, (collector, scores))) or None

    def about(self, session: str | None, subject: str | None) -> None:
        """Record the session, and a digest of the subject, on the current span and on later ones in its context."""
        if self.tracer.enabled:
            found = {n.CONVERSATION: session, n.SUBJECT: short_hash(subject) if subject else None}
            EXCHANGE_ATTRIBUTES.set({name: value for name, value in found.items() if value})
            CURRENT.get().set(EXCHANGE_ATTRIBUTES.get())

    def verification(self, report_id: str) -> AbstractContextManager[Span]:
        """Open the span of verifying one answer; spans created inside are its children."""
        attributes = {n.GROUNDING_ID: report_id, **EXCHANGE_ATTRIBUTES.get()}
        return active(self.tracer.start(n.VERIFY_SPAN, "internal", attributes))

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

    def link_origin(self, origin: str | None) -> None:
        """Link the current span to the trace that created the job."""
        ORIGIN.set(origin or "")
        if origin is not None:
            CURRENT.get().link(origin)

    def webhook(self, id_: str) -> AbstractContextManager[Span]:
        """Open the span of delivering one report, without its address."""
        return active(self.tracer.start("POST webhook", "client", {n.METHOD: "POST", n.GROUNDING_ID: id_}))


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


def build_telemetry(
    settings: TelemetrySettings, environ: Mapping[str, str] = os.environ, models: Iterable[str] = ()
) -> Telemetry:
    """Build telemetry that measures by default, and exports to a collector if the settings name one.

    Otherwise OpenTelemetry's standard variables may name it; headers and certificates come from these only. `models`
    may be used as labels from the start. Raises ConfigError if the settings name a collector and the libraries of the
    extra `telemetry` are not installed.
    """
    ours, metrics, lag = version("groundwire"), None, None
    if settings.metrics:
        with suppress(ImportError):  # prometheus-client is not installed
            from groundwire.telemetry.metrics import LoopLag, Metrics

            metrics = Metrics(settings.genai_semconv, models, ours)
            lag = LoopLag(metrics.lag)
    collector = _collector(settings, environ, metrics, ours) if is_sending(settings, environ) else None
    tracer, events = (collector.tracer, collector.events) if collector else (NO_TRACER, None)
    scores = build_scores(settings.scores, environ)
    if scores is not None and metrics is not None:
        metrics.readers.append(lambda: [(SCORES_LOST, (target,), count) for target, count in scores.lost()])
    names = n.EDITIONS[settings.genai_semconv]
    return Telemetry(tracer, metrics, names, settings.capture_content, events, lag, collector, scores)


def is_sending(settings: TelemetrySettings, environ: Mapping[str, str]) -> bool:
    """Return whether there is a collector; OTEL_SDK_DISABLED disables it."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return settings.otlp_endpoint is not None or any(environ.get(name) for name in _ENDPOINTS)


def _collector(
    settings: TelemetrySettings, environ: Mapping[str, str], metrics: Metrics | None, ours: str
) -> Collector | None:
    """Connect to the collector. Without the libraries, an address in the settings is an error.

    An address in the environment may be meant for other processes, so it is only logged.
    """
    try:
        from groundwire.telemetry.otlp import Collector
    except ImportError as error:
        if settings.otlp_endpoint is not None:
            raise ConfigError([f"telemetry.otlp_endpoint: OpenTelemetry is not installed; {INSTALL}"]) from error
        log.warning("telemetry.not_installed", install=INSTALL)
        return None
    collector = Collector(settings, ours, environ, metrics)
    if metrics is not None:
        metrics.readers.append(collector.failures)
    return collector


def configure_logs(settings: TelemetrySettings, telemetry: Telemetry | None = None) -> None:
    """Configure logs as one JSON line per event on standard error, with its trace id; a collector receives them too."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_trace,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if settings.capture_content else _CLASSES_AND_FRAMES,
            *([partial(_export, telemetry.events)] if telemetry and telemetry.events is not None else []),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _LibraryHandler)]:
        root.removeHandler(handler)
    root.addHandler(_LibraryHandler(settings.capture_content))


class _LibraryHandler(logging.Handler):
    """Log the warnings of libraries as events. Their messages may quote anything, so only the beginning is kept.

    Without this handler Python would print them, with the texts of exceptions.
    """

    def __init__(self, whole: bool) -> None:
        super().__init__(logging.WARNING)
        self._whole = whole

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; values that the library would interpolate are left out."""
        message = record.getMessage() if self._whole else str(record.msg).partition("\n")[0].partition(":")[0][:200]
        logger = structlog.get_logger("groundwire.libraries")
        logger.log(record.levelno, "library.warned", library=record.name, detail=message, exc_info=record.exc_info)


def _format_frames(exc_info: structlog.typing.ExcInfo) -> str:
    """Format an exception and its causes by class and frames; its text may quote private data."""
    lines: list[str] = []
    error: BaseException | None = exc_info[1]
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        lines += [type(error).__name__, *(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)


_CLASSES_AND_FRAMES = structlog.processors.ExceptionRenderer(_format_frames)


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    span = CURRENT.get()
    if span.traceparent:
        event["trace_id"] = span.trace_id
        event["span_id"] = span.span_id
    return event


def _export(events: LogExport, _: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Pass an event to the collector's queue as well."""
    events.line(event)
    return event
