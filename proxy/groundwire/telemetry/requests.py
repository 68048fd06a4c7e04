"""Records of HTTP requests and calls of model servers: spans, measurements, and fields of the log."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from groundwire.domain import Choice
from groundwire.telemetry import names as n
from groundwire.telemetry.spans import NO_SPAN, NO_TRACER, Span, Tracer
from groundwire.wire import Headers, header

if TYPE_CHECKING:
    from prometheus_client import Histogram

    from groundwire.telemetry.metrics import Metrics


_METHODS = frozenset("GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH QUERY".split())
_UNKNOWN = "_OTHER"  # the conventions' term; clients may send any method
EXCHANGE_ATTRIBUTES: ContextVar[Mapping[str, str]] = ContextVar("groundwire_about", default=MappingProxyType({}))
"""Attributes of every span that belongs to the exchange of the current context: session and subject."""
CURRENT_REQUEST: ContextVar[RequestRecord | None] = ContextVar("groundwire_request", default=None)


@dataclass(frozen=True, slots=True)
class Recorder:
    """The tracer, the metrics and the names of the GenAI conventions that calls are recorded with."""

    tracer: Tracer = NO_TRACER
    metrics: Metrics | None = None
    names: n.GenAINames = n.EDITIONS["1.41"]
    capture_content: bool = False


class RequestRecord:
    """One request, entered on arrival and left when its reply is sent. `log_fields` is added to its log line.

    Its span, if `traced`, continues the caller's trace. All work for the request belongs to it, also in tasks and
    threads that outlive it.
    """

    def __init__(self, recorder: Recorder, method: str, route: str, headers: Headers, *, traced: bool = True) -> None:
        tracer = recorder.tracer if traced else NO_TRACER
        self.method = method if method in _METHODS else _UNKNOWN
        self.log_fields: dict[str, int | str] = {}
        self._route = route
        self._metrics = recorder.metrics
        self._status = self._error = ""
        self._started = time.perf_counter()
        attributes = self._attributes(method, headers) if tracer.enabled else {}
        self._span: Span = tracer.start_root(f"{self.method} {route}", "server", attributes, headers)

    def __enter__(self) -> RequestRecord:
        self._active = self._span.activate()
        self._entered = CURRENT_REQUEST.set(self)
        if self._metrics is not None:
            self._metrics.active.inc()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            self.fail(kind.__name__)
        if self._metrics is not None:
            self._metrics.active.dec()
            labels = (self.method, self._route, self._status, self._error)
            took = time.perf_counter() - self._started
            self._metrics.requests.labels(*labels).observe(took, self._span.exemplar)
        self._span.end()
        self._span.deactivate(self._active)
        CURRENT_REQUEST.reset(self._entered)

    def answered(self, status: int) -> None:
        """Record that the reply has been sent completely."""
        self._status = str(status)
        self._span.set({n.STATUS_CODE: status})
        if status >= 500:
            self.fail(self._status)

    def client(self, name: str) -> None:
        """Record the name of the client's key."""
        self._span.set({n.CLIENT: name})

    def fail(self, reason: str) -> None:
        """Record a failure: the client disconnected, or the reply broke off."""
        self._error = reason
        self._span.fail(reason)

    def _attributes(self, method: str, headers: Headers) -> dict[str, str]:
        """Return attributes with the route instead of the path, because a path may name a subject."""
        agent = header(headers, b"user-agent")
        found = {n.METHOD: self.method, n.ROUTE: self._route, "url.path": self._route, "url.scheme": "http"}
        if self.method is _UNKNOWN:
            found["http.request.method_original"] = method
        if agent:
            found["user_agent.original"] = agent.decode("latin-1")
        return found


_CANCELLED = "cancelled"
MAX_MODEL_NAME = 128  # characters; clients may send any name


class UpstreamCall:
    """One call, from its start to the last byte of its answer, which the caller ends. All after `end` is ignored.

    `operation` and `provider` are terms of the GenAI conventions, `upstream` is the server's name in the settings and
    `body` the request. Tokens are recorded on this span only, so that no backend counts them twice.
    """

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
        # clients may send lone surrogates, which neither format of the metrics can represent
        self._model = str(body.get("model", ""))[:MAX_MODEL_NAME].encode("utf-8", "replace").decode()
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
            metrics.first_byte.labels(self._kind[2], str(status)).observe(waited, self._span.exemplar)
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
            metrics.calls.first_chunk.labels(*labels).observe(waited, self._span.exemplar)
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

    def superseded(self, outcome: str) -> None:
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
            metrics.calls.duration.labels(*labels).observe(took, self._span.exemplar)
        self._span.end()

    def _fail(self, error: str) -> None:
        self._error = error
        self._span.fail(error)

    def _label_values(self, metrics: Metrics, *, answered: bool = False) -> tuple[str, ...]:
        operation, provider, upstream, purpose = self._kind
        return operation, provider, metrics.models.label(self._model, answered=answered), upstream, purpose

    def _add_to_log(self, **facts: int | str) -> None:
        """Add fields to the log line of the request, for the answer's own call only, not for samples and probes."""
        if self._kind[3] == "answer" and (request := CURRENT_REQUEST.get()) is not None:
            request.log_fields.update(facts)

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
            **EXCHANGE_ATTRIBUTES.get(),
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


def short_hash(text: str) -> str:
    """Return the first 12 hexadecimal digits of a text's SHA-256, which identify it without showing it."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def input_messages(body: Mapping[str, Any]) -> str | None:
    """Return the messages of a request in any dialect; None if there are none."""
    messages = [*_message("system", body.get("system")), *_message("system", body.get("instructions"))]
    for field in ("messages", "input", "prompt"):
        messages += _messages(body.get(field))
    return json.dumps(messages, ensure_ascii=False) if messages else None


def output_messages(choices: Sequence[Choice]) -> str:
    """Return the messages of an answer."""
    return json.dumps(
        [
            {
                "role": "assistant",
                "parts": [{"type": "text", "content": choice.text}],
                "finish_reason": choice.finish_reason or "",
            }
            for choice in choices
        ],
        ensure_ascii=False,
    )


def _messages(given: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(given, str):
        yield from _message("user", given)
    for message in given if isinstance(given, list) else ():
        if isinstance(message, Mapping):
            yield {
                "role": str(message.get("role", "user")),
                "parts": [*_parts(message.get("content")), *_tool_calls(message)],
            }
        else:
            yield from _message("user", message)


def _message(role: str, content: Any) -> Iterator[Mapping[str, Any]]:
    parts = list(_parts(content))
    if parts:
        yield {"role": role, "parts": parts}


def _parts(content: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str) and content:
        yield {"type": "text", "content": content}
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            yield {"type": "text", "content": part}
        elif isinstance(part, Mapping):
            text = part.get("text")
            yield {"type": "text", "content": text} if isinstance(text, str) else {"type": str(part.get("type"))}


def _tool_calls(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield {
                "type": "tool_call",
                "id": call.get("id"),
                "name": function.get("name"),
                "arguments": function.get("arguments"),
            }


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, None if not reported; `input` includes those read from and written to a cache."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None

    @staticmethod
    def of(usage: Mapping[str, Any]) -> Usage:
        """Read the `usage` of a reply. Anthropic counts cached tokens separately from the input."""
        read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
        given = _count(usage, "prompt_tokens", "input_tokens")
        prompt = _details(usage, "prompt_tokens_details", "input_tokens_details")
        completion = _details(usage, "completion_tokens_details", "output_tokens_details")
        return Usage(
            None if given is None else given + (read or 0) + (written or 0),
            _count(usage, "completion_tokens", "output_tokens"),
            _count(prompt, "cached_tokens") if prompt else read,
            written,
            _count(completion, "reasoning_tokens"),
        )


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    """Return the count under the first of these names that is present."""
    for name in names:
        count = usage.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            return count
    return None


def _details(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return the first mapping under one of these names, an empty one if there is none."""
    return next((found for name in names if isinstance(found := usage.get(name), Mapping)), {})
