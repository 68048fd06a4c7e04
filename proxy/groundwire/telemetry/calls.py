"""One call of a model server: its span, its measurements, and its fields in the request's log line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode, Tracer

from groundwire.domain import Choice
from groundwire.telemetry.content import answered, asked
from groundwire.telemetry.metrics import Metrics, Series
from groundwire.telemetry.names import (
    CACHE_READ,
    ERROR,
    FINISH_REASONS,
    FIRST_CHUNK,
    INPUT_MESSAGES,
    INPUT_TOKENS,
    OPERATION,
    OUTPUT_MESSAGES,
    OUTPUT_TOKENS,
    PROVIDER,
    PURPOSE,
    REASONING,
    REQUEST_ATTRIBUTES,
    REQUEST_MODEL,
    REQUEST_STREAM,
    RESPONSE_ID,
    RESPONSE_MODEL,
    UPSTREAM,
    GenAINames,
    Purpose,
)
from groundwire.telemetry.served import ABOUT, PROPAGATOR, W3C, exemplar_of, served
from groundwire.telemetry.usage import Usage
from groundwire.wire import Headers

_CANCELLED = "cancelled"
_LONGEST_MODEL = 128  # characters; clients may send any name


class Recording:
    """The tracer and metrics that calls are recorded with; either may be None."""

    __slots__ = ("capture_content", "metrics", "names", "tracer")

    def __init__(
        self, tracer: Tracer | None, metrics: Metrics | None, names: GenAINames, *, capture_content: bool
    ) -> None:
        self.tracer = tracer
        self.metrics = metrics
        self.names = names
        self.capture_content = capture_content


class UpstreamCall:
    """One call, from its start to the last byte of its answer. Everything after `end` is ignored.

    `operation` and `provider` are terms of the GenAI conventions, `upstream` is the server's name in the settings and
    `body` the request. Tokens are recorded on this span only, so that no backend counts them twice.
    """

    __slots__ = (
        "_chunk_at", "_ended", "_error", "_kind", "_labels", "_model", "_per_chunk", "_recording", "_span", "_started",
        "_streams",
    )  # fmt: skip

    def __init__(
        self,
        recording: Recording,
        operation: str,
        provider: str,
        upstream: str,
        body: Mapping[str, Any],
        purpose: Purpose = "answer",
    ) -> None:
        self._recording = recording
        self._kind = (operation, provider, upstream, purpose)
        self._model = str(body.get("model", ""))[:_LONGEST_MODEL]
        self._streams = body.get("stream") is True
        self._error = ""
        self._ended = False
        self._labels: tuple[str, ...] | None = None
        self._per_chunk: Series | None = None
        self._started = self._chunk_at = time.perf_counter()
        self._span: Span = INVALID_SPAN
        if recording.tracer is not None:
            self._span = recording.tracer.start_span(
                f"{operation} {self._model}".rstrip(), kind=SpanKind.CLIENT, attributes=self._asked(body)
            )
        self._tell(upstream=upstream, model=self._model)

    @property
    def is_recording(self) -> bool:
        """True if chunks and the end of the call are recorded."""
        return self._recording.metrics is not None or self._span.is_recording()

    def propagated(self, headers: Headers) -> Headers:
        """Return request headers with the W3C trace context of this call instead of the caller's."""
        if self._recording.tracer is None:
            return headers
        carrier: dict[str, str] = {}
        PROPAGATOR.inject(carrier, trace.set_span_in_context(self._span, Context()))
        ours = tuple((name.encode(), value.encode()) for name, value in carrier.items())
        return (*(pair for pair in headers if pair[0] not in W3C), *ours)

    def replied(self, status: int) -> None:
        """Record the status of the reply."""
        if status >= 400:
            self._fail(str(status))
        if (metrics := self._recording.metrics) is not None:
            waited = time.perf_counter() - self._started
            metrics.first_byte.at((self._kind[2], str(status))).observe(waited, exemplar_of(self._span))
            self._labels = self._labelled(metrics, answered=status < 300)

    def chunk(self) -> None:
        """Record the arrival of a chunk."""
        if not self._streams or self._error:
            return
        now = time.perf_counter()
        if self._per_chunk is not None:
            self._per_chunk.observe(now - self._chunk_at)
        elif self._chunk_at == self._started:
            self._began(now - self._started)
        self._chunk_at = now

    def _began(self, waited: float) -> None:
        self._span.set_attribute(FIRST_CHUNK, waited)
        if (metrics := self._recording.metrics) is not None:
            labels = self._labels or self._labelled(metrics)
            metrics.calls.first_chunk.at(labels).observe(waited, exemplar_of(self._span))
            self._per_chunk = metrics.calls.per_chunk.at(labels)

    def answered(
        self,
        id_: str | None,
        model: str | None,
        reasons: Sequence[str],
        usage: Mapping[str, Any],
        choices: Callable[[], Sequence[Choice]] = tuple,
    ) -> None:
        """Record the metadata of the answer; `choices` returns its text and is called only if content is captured."""
        tokens = Usage.of(usage)
        told = {"input_tokens": tokens.input, "output_tokens": tokens.output}
        self._tell(**{name: count for name, count in told.items() if count is not None})
        if self._span.is_recording():
            self._span.set_attributes(self._answered(id_, model, reasons, tokens))
            if self._recording.capture_content and (said := choices()):
                self._span.set_attribute(OUTPUT_MESSAGES, answered(said))
        if (metrics := self._recording.metrics) is not None and not self._ended:
            metrics.calls.use(self._labels or self._labelled(metrics), (tokens.input, tokens.output))

    def failed(self, error: BaseException) -> None:
        """Record an error before or during the answer. Only its class is kept, because its text may contain an
        address.
        """
        is_gone = isinstance(error, asyncio.CancelledError | GeneratorExit)
        self._fail(_CANCELLED if is_gone else type(error).__name__)

    def passed_over(self, outcome: str) -> None:
        """Record the reason for which another attempt replaces this one."""
        if self._ended:
            return
        self._fail(self._error or outcome)
        self._span.set_attribute("grounding.attempt.outcome", outcome)

    def end(self) -> None:
        """Record the end of the call."""
        if self._ended:
            return
        self._ended = True
        if (metrics := self._recording.metrics) is not None:
            labels = (*(self._labels or self._labelled(metrics)), self._error)
            took = time.perf_counter() - self._started
            metrics.calls.duration.at(labels).observe(took, exemplar_of(self._span))
        self._span.end()

    def _fail(self, error: str) -> None:
        self._error = error
        self._span.set_attribute(ERROR, error)
        self._span.set_status(Status(StatusCode.ERROR))

    def _labelled(self, metrics: Metrics, *, answered: bool = False) -> tuple[str, ...]:
        operation, provider, upstream, purpose = self._kind
        return operation, provider, metrics.models.label(self._model, answered=answered), upstream, purpose

    def _tell(self, **facts: int | str) -> None:
        """Add fields to the log line of the request, for the answer's own call only, not for samples and probes."""
        if self._kind[3] == "answer" and (request := served()) is not None:
            request.told.update(facts)

    def _asked(self, body: Mapping[str, Any]) -> dict[str, Any]:
        operation, provider, upstream, purpose = self._kind
        given = {name: body.get(field) for name, field in REQUEST_ATTRIBUTES.items()}
        attributes: dict[str, Any] = {
            OPERATION: operation,
            PROVIDER: provider,
            REQUEST_MODEL: self._model,
            REQUEST_STREAM: self._streams,
            UPSTREAM: upstream,
            PURPOSE: purpose,
            **ABOUT.get(),
            **{name: value for name, value in given.items() if isinstance(value, (int, float, str))},
        }
        if self._recording.capture_content and (said := asked(body)) is not None:
            attributes[INPUT_MESSAGES] = said
        return attributes

    def _answered(self, id_: str | None, model: str | None, reasons: Sequence[str], tokens: Usage) -> dict[str, Any]:
        found = {
            RESPONSE_ID: id_,
            RESPONSE_MODEL: model,
            FINISH_REASONS: list(reasons) or None,
            INPUT_TOKENS: tokens.input,
            OUTPUT_TOKENS: tokens.output,
            CACHE_READ: tokens.cache_read,
            self._recording.names.cache_written: tokens.cache_written,
            REASONING: tokens.reasoning,
        }
        return {name: value for name, value in found.items() if value is not None}
