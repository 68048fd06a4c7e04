"""One call of a model server: its span, its measurements, and its fields in the request's log line."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groundwire.domain import Choice
from groundwire.telemetry import names as n
from groundwire.telemetry.genai import Usage, input_messages, output_messages
from groundwire.telemetry.metrics import Metrics, exemplar_of
from groundwire.telemetry.served import ABOUT, served
from groundwire.telemetry.spans import NO_SPAN, NO_TRACER, Tracer
from groundwire.wire import Headers

if TYPE_CHECKING:
    from prometheus_client import Histogram

_CANCELLED = "cancelled"
MAX_MODEL_NAME = 128  # characters; clients may send any name


@dataclass(frozen=True, slots=True)
class Recorder:
    """The tracer, the metrics and the names of the GenAI conventions that calls are recorded with."""

    tracer: Tracer = NO_TRACER
    metrics: Metrics | None = None
    names: n.GenAINames = n.EDITIONS["1.41"]
    capture_content: bool = False


class UpstreamCall:
    """One call, from its start to the last byte of its answer. Everything after `end` is ignored.

    `operation` and `provider` are terms of the GenAI conventions, `upstream` is the server's name in the settings and
    `body` the request. Tokens are recorded on this span only, so that no backend counts them twice.
    """

    __slots__ = (
        "_chunk_at", "_ended", "_error", "_kind", "_labels", "_model", "_per_chunk", "_recorder", "_span", "_started",
        "_streams",
    )  # fmt: skip

    def __init__(
        self,
        recorder: Recorder,
        operation: str,
        provider: str,
        upstream: str,
        body: Mapping[str, Any],
        purpose: n.Purpose = "answer",
    ) -> None:
        self._recorder = recorder
        self._kind = (operation, provider, upstream, purpose)
        self._model = _writable(str(body.get("model", ""))[:MAX_MODEL_NAME])
        self._streams = body.get("stream") is True
        self._error = ""
        self._ended = False
        self._labels: tuple[str, ...] | None = None
        self._per_chunk: Histogram | None = None
        self._started = self._chunk_at = time.perf_counter()
        self._span = NO_SPAN
        if recorder.tracer.enabled:
            name = f"{operation} {self._model}".rstrip()
            self._span = recorder.tracer.start(name, "client", self._request_attributes(body))
        self._add_to_log(upstream=upstream, model=self._model)

    @property
    def is_recording(self) -> bool:
        """True if chunks and the end of the call are recorded."""
        return self._recorder.metrics is not None or self._span.is_recording

    def propagated(self, headers: Headers) -> Headers:
        """Return request headers with the W3C trace context of this call instead of the caller's."""
        return self._span.propagate(headers)

    def replied(self, status: int) -> None:
        """Record the status of the reply."""
        if status >= 400:
            self._fail(str(status))
        if (metrics := self._recorder.metrics) is not None:
            waited = time.perf_counter() - self._started
            metrics.first_byte.labels(self._kind[2], str(status)).observe(waited, exemplar_of(self._span))
            self._labels = self._label_values(metrics, answered=status < 300)

    def chunk(self) -> None:
        """Record the arrival of a chunk."""
        if not self._streams or self._error:
            return
        now = time.perf_counter()
        if self._per_chunk is not None:
            self._per_chunk.observe(now - self._chunk_at)
        elif self._chunk_at == self._started:
            self._first_chunk(now - self._started)
        self._chunk_at = now

    def _first_chunk(self, waited: float) -> None:
        self._span.set({n.FIRST_CHUNK: waited})
        if (metrics := self._recorder.metrics) is not None:
            labels = self._labels or self._label_values(metrics)
            metrics.calls.first_chunk.labels(*labels).observe(waited, exemplar_of(self._span))
            self._per_chunk = metrics.calls.per_chunk.labels(*labels)

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
        counts = {"input_tokens": tokens.input, "output_tokens": tokens.output}
        self._add_to_log(**{name: count for name, count in counts.items() if count is not None})
        if self._span.is_recording:
            self._span.set(self._response_attributes(id_, model, reasons, tokens))
            if self._recorder.capture_content and (captured := choices()):
                self._span.set({n.OUTPUT_MESSAGES: output_messages(captured)})
        if (metrics := self._recorder.metrics) is not None and not self._ended:
            metrics.calls.count_tokens(self._labels or self._label_values(metrics), (tokens.input, tokens.output))

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
        self._span.set({"grounding.attempt.outcome": outcome})

    def end(self) -> None:
        """Record the end of the call."""
        if self._ended:
            return
        self._ended = True
        if (metrics := self._recorder.metrics) is not None:
            labels = (*(self._labels or self._label_values(metrics)), self._error)
            took = time.perf_counter() - self._started
            metrics.calls.duration.labels(*labels).observe(took, exemplar_of(self._span))
        self._span.end()

    def _fail(self, error: str) -> None:
        self._error = error
        self._span.fail(error)

    def _label_values(self, metrics: Metrics, *, answered: bool = False) -> tuple[str, ...]:
        operation, provider, upstream, purpose = self._kind
        return operation, provider, metrics.models.label(self._model, answered=answered), upstream, purpose

    def _add_to_log(self, **facts: int | str) -> None:
        """Add fields to the log line of the request, for the answer's own call only, not for samples and probes."""
        if self._kind[3] == "answer" and (request := served()) is not None:
            request.told.update(facts)

    def _request_attributes(self, body: Mapping[str, Any]) -> dict[str, Any]:
        operation, provider, upstream, purpose = self._kind
        given = {name: body.get(field) for name, field in n.REQUEST_ATTRIBUTES.items()}
        attributes: dict[str, Any] = {
            n.OPERATION: operation,
            n.PROVIDER: provider,
            n.REQUEST_MODEL: self._model,
            n.REQUEST_STREAM: self._streams,
            n.UPSTREAM: upstream,
            n.PURPOSE: purpose,
            **ABOUT.get(),
            **{name: value for name, value in given.items() if isinstance(value, (int, float, str))},
        }
        if self._recorder.capture_content and (messages := input_messages(body)) is not None:
            attributes[n.INPUT_MESSAGES] = messages
        return attributes

    def _response_attributes(
        self, id_: str | None, model: str | None, reasons: Sequence[str], tokens: Usage
    ) -> dict[str, Any]:
        found = {
            n.RESPONSE_ID: id_,
            n.RESPONSE_MODEL: model,
            n.FINISH_REASONS: list(reasons) or None,
            n.INPUT_TOKENS: tokens.input,
            n.OUTPUT_TOKENS: tokens.output,
            n.CACHE_READ: tokens.cache_read,
            self._recorder.names.cache_written: tokens.cache_written,
            n.REASONING: tokens.reasoning,
        }
        return {name: value for name, value in found.items() if value is not None}


def _writable(text: str) -> str:
    """Replace lone surrogates, which clients may send and neither format of the metrics can represent."""
    return text.encode("utf-8", "replace").decode()
