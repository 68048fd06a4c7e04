"""Process one completion: read it, route it, forward it, verify its answer, annotate it.

The answer is the upstream's in every byte but the added `grounding`, and no finding changes that.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from groundwire.dialects.dialect import Dialect
from groundwire.dialects.framing import Decoder
from groundwire.dialects.jsonbytes import with_member
from groundwire.dialects.request import Mode, Request, read_options, read_request
from groundwire.errors import Overload, UnreadableBody
from groundwire.gateway.forward import (
    Caller,
    Forwarding,
    Outgoing,
    as_it_is,
    chunks_of,
    parsed,
    read,
    read_answer,
    resumed,
)
from groundwire.gateway.repeat import Corrector, Sampler
from groundwire.gateway.service import GroundingService
from groundwire.gateway.session import GroundingSession
from groundwire.gateway.stream import AnnotatedStream, StreamSettings
from groundwire.telemetry import Telemetry
from groundwire.upstream.http import prime
from groundwire.upstream.router import Route, Router
from groundwire.wire import Call, Headers, Reply, header

_SKIPPED: Headers = ((b"x-grounding-status", b"skipped"), (b"x-grounding-verdict", b"not_checked"))
_UNKNOWN_CODING = "The answer cannot be read: its content-encoding is none of gzip, deflate and identity."
_TOO_LONG = "The answer is longer than {} bytes, so it is not read."
_UNBUFFERED: Headers = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


@dataclass(frozen=True, slots=True)
class Completions:
    """The processing of completions; `timeout` (seconds) is for a body's report, `max_answer` (bytes) for reading."""

    router: Router
    grounding: GroundingService
    telemetry: Telemetry
    sampler: Sampler
    corrector: Corrector
    mode: Mode = "sync"
    timeout: float = 2.0
    max_answer: int = 32 * 2**20
    stream: StreamSettings = field(default_factory=StreamSettings)

    async def complete(self, dialect: Dialect, call: Call) -> Reply:
        """Return the upstream's answer to `call`, with its grounding. Raises RequestError when there is none to give.

        A request without a model goes to the default upstream, and so does a body that is no JSON object.
        """
        try:
            ours = _ours(call.headers)
            request = await parsed(call.body, lambda: read_request(dialect, call.body, ours, call.tenant))
        except UnreadableBody as error:
            return await self._unreadable(dialect, call, str(error))
        self.telemetry.about(request.options.session, request.options.subject)
        route = self.router.choose(request.model) if request.model else self.router.default

        outgoing = _outgoing(request, call)
        forwarding = Forwarding(self.telemetry, dialect.operation, request.body)
        mode = self._mode(request)
        if mode == "off":
            return _with_headers(await forwarding.passed(await forwarding.send(route, outgoing)), _SKIPPED)
        try:
            session = GroundingSession.begin(self.grounding, request, mode, Caller.of(request.model, call.headers))
        except Overload:
            unread = self.grounding.unread(request)
            return _with_headers(await forwarding.passed(await forwarding.send(route, outgoing)), unread.headers)
        try:
            sent = await outgoing(route)
            session.sample(self.sampler.begin(request, route, sent))
            session.correct(self.corrector.begin(request, route, sent))
            reply = await forwarding.send(route, outgoing)
            session.answered(forwarding.attempts, counts_prompt=forwarding.counts_prompt)
            decoder = Decoder(header(reply.headers, b"content-encoding"))
            if reply.status != 200 or not decoder.known:
                session.abandon()
                passed = await forwarding.passed(reply)
                if decoder.known:
                    return passed
                return _with_headers(passed, self.grounding.unread(request, session.id, _UNKNOWN_CODING).headers)
            if (header(reply.headers, b"content-type") or b"").startswith(dialect.framing.media_type):
                return await self._stream(request, session, forwarding, reply, decoder)
            return await self._body(request, session, forwarding, reply, decoder)
        except BaseException:
            session.abandon()
            raise

    async def _unreadable(self, dialect: Dialect, call: Call, reason: str) -> Reply:
        """Return the default upstream's own answer to a body that is no JSON object, with a report that failed."""
        request = Request(dialect, call.body, {}, "", read_options({}, _ours(call.headers)), call.tenant)
        forwarding = Forwarding(self.telemetry, dialect.operation, request.body)
        reply = await forwarding.passed(await forwarding.send(self.router.default, as_it_is(call)))
        if self._mode(request) == "off":
            return _with_headers(reply, _SKIPPED)
        return _with_headers(reply, self.grounding.unread(request, reason=reason).headers)

    async def repeat(self, session: GroundingSession, request: Request, call: Call) -> None:
        """Have the model of an answer queried again where the request asks for it; `call` gives the headers.

        Raises UnknownModel.
        """
        if request.options.samples is None and not request.options.corrective_retry:
            return
        route = self.router.choose(request.model)
        target = request.dialect.path.removeprefix("/v1")
        sent = replace(await _outgoing(request, call)(route), target=target)
        if request.options.samples is not None:
            session.sample(self.sampler.begin(request, route, sent))
        if request.options.corrective_retry:
            session.correct(self.corrector.begin(request, route, sent))

    def _mode(self, request: Request) -> Mode:
        if self.mode == "off" or request.dialect.answers_later(request.body):
            return "off"
        return request.options.mode or self.mode

    async def _stream(
        self, request: Request, session: GroundingSession, forwarding: Forwarding, reply: Reply, decoder: Decoder
    ) -> Reply:
        """The reply with its verdict inside the stream; only the report's id is known when its headers go out."""
        stream = AnnotatedStream(request, session, decoder, self.stream)
        headers = _without(reply.headers, b"content-length", b"content-encoding")
        unbuffered = tuple(pair for pair in _UNBUFFERED if header(headers, pair[0]) is None)
        ours = ((b"x-grounding-id", session.id.encode()), *unbuffered)
        body = await forwarding.recorded(await prime(stream.events(chunks_of(reply))), stream.answer)
        return Reply(reply.status, headers + ours, body, in_events=request.dialect.framing.comment is not None)

    async def _body(
        self, request: Request, session: GroundingSession, forwarding: Forwarding, reply: Reply, decoder: Decoder
    ) -> Reply:
        """Return the reply with its verdict in body and headers; one that cannot be read passes unchanged with a failed
        report.
        """
        chunks = chunks_of(reply)
        limit, answer, reason = self.max_answer, None, ""
        try:
            raw, end = await read(chunks, limit, session.reserve)
            if end == "whole":
                decoded, answer, reason = await read_answer(raw, decoder, request.dialect, limit)
        except BaseException as error:
            forwarding.broke_off(error)
            raise
        finally:
            forwarding.end(answer)
        if answer is None:
            session.abandon()
            reason = _TOO_LONG.format(limit) if end == "too_long" else reason
            body = raw if end == "whole" else await prime(resumed(raw, chunks))
            return _with_headers(replace(reply, body=body), self.grounding.unread(request, session.id, reason).headers)
        session.conclude(answer)
        annotation = await session.annotation(self.timeout)
        if annotation.shown is None:
            return _with_headers(replace(reply, body=raw), annotation.headers)
        headers = _without(reply.headers, b"content-length", b"content-encoding")
        body = await parsed(decoded, partial(with_member, decoded, "grounding", annotation.shown))
        return Reply(reply.status, headers + annotation.headers, body)


def _outgoing(request: Request, call: Call) -> Outgoing:
    """Return a function that gives the call for a route; the body for an upstream is built once."""
    bodies: dict[tuple[str, bool], bytes] = {}

    async def outgoing(route: Route) -> Call:
        key = route.model, route.upstream.forwards_documents
        if key not in bodies:
            bodies[key] = await parsed(request.raw, lambda: request.outgoing(*key))
        return replace(call, body=bodies[key])

    return outgoing


def _ours(headers: Headers) -> dict[str, str]:
    """Return the `x-grounding-*` headers of a request."""
    ours = [pair for pair in headers if pair[0].startswith(b"x-grounding-")]
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in ours}


def _without(headers: Headers, *names: bytes) -> Headers:
    return tuple(pair for pair in headers if pair[0] not in names)


def _with_headers(reply: Reply, ours: Headers) -> Reply:
    return replace(reply, headers=reply.headers + ours)
