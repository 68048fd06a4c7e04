"""What happens to one completion, in order: read it, route it, forward it, verify its answer, annotate it.

The answer is the upstream's in every byte but the `grounding` that is added to it, and nothing found changes that.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field, replace

from opentelemetry.trace import Span

from proxy.dialects.answer import Answer, Dialect
from proxy.dialects.encoding import Decoder
from proxy.dialects.jsonbytes import loads, with_member
from proxy.dialects.options import Mode
from proxy.dialects.request import Request, read_request
from proxy.errors import RequestError
from proxy.gateway.grounding import Grounder, Grounding
from proxy.gateway.stream import AnnotatedStream, StreamSettings
from proxy.telemetry import Telemetry
from proxy.types import Call, Chunks, Headers, Reply
from proxy.upstream.headers import header
from proxy.upstream.router import Route, Router

_SKIPPED: Headers = ((b"x-grounding-status", b"skipped"), (b"x-grounding-verdict", b"not_checked"))
_UNREADABLE: Headers = ((b"x-grounding-status", b"failed"), (b"x-grounding-verdict", b"not_checked"))
_UNBUFFERED: Headers = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


@dataclass(frozen=True, slots=True)
class CompletionSettings:
    """How completions are handled; `timeout` (seconds) is for a body's report, `max_answer` (bytes) for reading."""

    mode: Mode = "sync"
    timeout: float = 5.0
    max_answer: int = 32 * 2**20
    stream: StreamSettings = field(default_factory=StreamSettings)


@dataclass(frozen=True, slots=True)
class Completions:
    """The way of a completion through the house."""

    router: Router
    grounder: Grounder
    settings: CompletionSettings
    telemetry: Telemetry

    async def complete(self, dialect: Dialect, call: Call) -> Reply:
        """The upstream's answer to `call`, with its grounding. Raises RequestError when there is no answer to give."""
        request = read_request(dialect, call.body, _text(call.headers))
        route = self.router.choose(request.model)
        mode = self._mode(request)
        span = self._upstream_span(request, route)
        if mode == "off":
            reply = await self._forwarded(call, request, route, span)
            return _with_headers(replace(reply, body=self._traced(_chunks(reply), span)), _SKIPPED)
        grounding = self.grounder.begin(request, mode)
        try:
            reply = await self._forwarded(call, request, route, span)
            decoder = Decoder(header(reply.headers, b"content-encoding"))
            if reply.status != 200 or not decoder.known:
                grounding.abandon()
                reply = replace(reply, body=self._traced(_chunks(reply), span))
                return reply if decoder.known else _with_headers(reply, _UNREADABLE)
            if (header(reply.headers, b"content-type") or b"").startswith(b"text/event-stream"):
                return self._stream(request, grounding, reply, decoder, span)
            return await self._body(request, grounding, reply, decoder, span)
        except BaseException:
            grounding.abandon()
            raise

    def _mode(self, request: Request) -> Mode:
        return "off" if self.settings.mode == "off" else request.options.mode or self.settings.mode

    def _upstream_span(self, request: Request, route: Route) -> Span:
        upstream = route.upstream
        return self.telemetry.upstream_span(request.dialect.operation, upstream.provider, upstream.name, request.body)

    async def _forwarded(self, call: Call, request: Request, route: Route, span: Span) -> Reply:
        """The upstream's reply to the client's bytes, less what is meant for us."""
        outgoing = replace(
            call,
            headers=self.telemetry.propagated(call.headers, span),
            body=request.outgoing(route.model, route.upstream.forwards_documents),
        )
        try:
            return await route.upstream.send(outgoing)
        except BaseException as error:
            self.telemetry.failed(span, error)
            span.end()
            raise

    def _stream(self, request: Request, grounding: Grounding, reply: Reply, decoder: Decoder, span: Span) -> Reply:
        """The reply with its verdict inside the stream; only the report's id is known when its headers go out."""
        stream = AnnotatedStream(request, grounding, decoder, self.settings.stream)
        headers = _without(reply.headers, b"content-length", b"content-encoding")
        unbuffered = tuple(pair for pair in _UNBUFFERED if header(headers, pair[0]) is None)
        ours = ((b"x-grounding-id", grounding.id.encode()), *unbuffered)
        body = self._traced(stream.events(_chunks(reply)), span, stream.answer)
        return Reply(reply.status, headers + ours, body, in_events=True)

    async def _body(self, request: Request, grounding: Grounding, reply: Reply, decoder: Decoder, span: Span) -> Reply:
        """The reply with its verdict in body and headers; one that cannot be read passes as it is, and says so."""
        chunks = _chunks(reply)
        answer: Answer | None = None
        try:
            raw, is_whole = await _read(chunks, self.settings.max_answer)
            if is_whole:
                decoded, answer = _parsed(raw, decoder, request.dialect)
            if answer is not None:
                self.telemetry.answered(span, answer.id, answer.model, answer.finish_reasons, answer.usage)
        finally:
            span.end()
        if answer is None:
            grounding.abandon()
            return _with_headers(replace(reply, body=raw if is_whole else _resumed(raw, chunks)), _UNREADABLE)
        grounding.conclude(answer)
        annotation = await grounding.annotation(within=self.settings.timeout)
        if annotation.shown is None:
            return _with_headers(replace(reply, body=raw), annotation.headers)
        headers = _without(reply.headers, b"content-length", b"content-encoding")
        return Reply(reply.status, headers + annotation.headers, with_member(decoded, "grounding", annotation.shown))

    def _traced(self, chunks: Chunks, span: Span, answer: Answer | None = None) -> Chunks:
        """The same chunks, within the span of the call that they belong to."""
        return self._within(chunks, span, answer) if span.is_recording() else chunks

    async def _within(self, chunks: Chunks, span: Span, answer: Answer | None) -> Chunks:
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
        except RequestError as error:
            self.telemetry.failed(span, error)
            raise
        finally:
            if answer is not None:
                self.telemetry.answered(span, answer.id, answer.model, answer.finish_reasons, answer.usage)
            span.end()


async def _read(chunks: Chunks, limit: int) -> tuple[bytes, bool]:
    """The bytes of a body, and whether that is all of it: reading stops once it is over the limit."""
    raw = bytearray()
    async for chunk in chunks:
        raw += chunk
        if len(raw) > limit:
            return bytes(raw), False
    return bytes(raw), True


async def _resumed(start: bytes, chunks: Chunks) -> Chunks:
    async with aclosing(chunks):
        yield start
        async for chunk in chunks:
            yield chunk


def _parsed(raw: bytes, decoder: Decoder, dialect: Dialect) -> tuple[bytes, Answer | None]:
    """A body freed of its coding, and the answer that it holds; no answer when it is no JSON object."""
    try:
        decoded = decoder.feed(raw)
        body = loads(decoded)
    except ValueError:
        return raw, None
    return decoded, dialect.whole(body) if isinstance(body, dict) else None


def _chunks(reply: Reply) -> Chunks:
    return _once(reply.body) if isinstance(reply.body, bytes) else reply.body


async def _once(body: bytes) -> Chunks:
    yield body


def _text(headers: Headers) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}


def _without(headers: Headers, *names: bytes) -> Headers:
    return tuple(pair for pair in headers if pair[0] not in names)


def _with_headers(reply: Reply, ours: Headers) -> Reply:
    return replace(reply, headers=reply.headers + ours)
