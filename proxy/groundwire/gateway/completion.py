"""Process one completion: read it, route it, forward it, verify its answer, annotate it, whether whole or streamed.

The answer is the upstream's in every byte but the added `grounding`, and no finding changes that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from groundwire.config.settings import Stream
from groundwire.dialects.dialect import Answer, Dialect, Fault
from groundwire.dialects.framing import Decoder, Event, EventTooLarge
from groundwire.dialects.jsonbytes import dumps, loads_object, with_member
from groundwire.dialects.request import Mode, Request, read_options, read_request
from groundwire.errors import Overload, RequestError, UnreadableBody, UpstreamBroken
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
from groundwire.upstream.http import prime
from groundwire.upstream.router import Route, Router
from groundwire.wire import Call, Chunks, Headers, Reply, header, without

_SKIPPED: Headers = ((b"x-grounding-status", b"skipped"), (b"x-grounding-verdict", b"not_checked"))
_UNKNOWN_CODING = "The answer cannot be read: its content-encoding is none of gzip, deflate and identity."
_TOO_LONG = "The answer is longer than {} bytes, so it is not read."
_OF_CODING = (b"content-length", b"content-encoding")
_UNBUFFERED: Headers = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))


@dataclass(frozen=True, slots=True)
class Completions:
    """The processing of completions; `timeout` (seconds) is for a body's report, `max_answer` (bytes) for reading."""

    router: Router
    grounding: GroundingService
    sampler: Sampler
    corrector: Corrector
    mode: Mode = "sync"
    timeout: float = 2.0
    max_answer: int = 32 * 2**20
    stream: Stream = field(default_factory=Stream)

    async def complete(self, dialect: Dialect, call: Call) -> Reply:
        """Return the upstream's answer to `call`, with its grounding. Raises RequestError when there is none to give.

        A request without a model goes to the default upstream, and so does a body that is no JSON object.
        """
        try:
            ours = _ours(call.headers)
            request = await parsed(call.body, lambda: read_request(dialect, call.body, ours, call.tenant))
        except UnreadableBody as error:
            return await self._unreadable(dialect, call, str(error))
        self.grounding.telemetry.about(request.options.session, request.options.subject)
        route = self.router.choose(request.model) if request.model else self.router.default
        outgoing = _outgoing(request, call)
        forwarding = Forwarding(self.grounding.telemetry, dialect.operation, request.body)
        session, unverified = None, _SKIPPED
        if (mode := self._mode(request)) != "off":
            try:
                session = GroundingSession.begin(self.grounding, request, mode, Caller.of(request.model, call.headers))
            except Overload:
                unverified = self.grounding.unread(request).headers
        if session is None:
            return _with_headers(await forwarding.passed(await forwarding.send(route, outgoing)), unverified)
        try:
            sent = await outgoing(route)
            session.repeat(self.sampler.begin(request, route, sent), self.corrector.begin(request, route, sent))
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
        forwarding = Forwarding(self.grounding.telemetry, dialect.operation, request.body)
        reply = await forwarding.passed(await forwarding.send(self.router.default, as_it_is(call)))
        if self._mode(request) == "off":
            return _with_headers(reply, _SKIPPED)
        return _with_headers(reply, self.grounding.unread(request, reason=reason).headers)

    async def repeat(self, session: GroundingSession, request: Request, call: Call) -> None:
        """Have the model of an answer queried again where the request asks for it; `call` gives the headers.

        Raises UnknownModel.
        """
        is_sampled, is_corrected = request.options.samples is not None, request.options.corrective_retry
        if not (is_sampled or is_corrected):
            return
        route = self.router.choose(request.model)
        target = request.dialect.path.removeprefix("/v1")
        sent = replace(await _outgoing(request, call)(route), target=target)
        session.repeat(
            self.sampler.begin(request, route, sent) if is_sampled else None,
            self.corrector.begin(request, route, sent) if is_corrected else None,
        )

    def _mode(self, request: Request) -> Mode:
        if self.mode == "off" or request.dialect.answers_later(request.body):
            return "off"
        return request.options.mode or self.mode

    async def _stream(
        self, request: Request, session: GroundingSession, forwarding: Forwarding, reply: Reply, decoder: Decoder
    ) -> Reply:
        """The reply with its verdict inside the stream; only the report's id is known when its headers go out."""
        stream = AnnotatedStream(request, session, decoder, self.stream)
        headers = without(reply.headers, _OF_CODING)
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
        headers = without(reply.headers, _OF_CODING)
        body = await parsed(decoded, partial(with_member, decoded, "grounding", annotation.shown))
        return Reply(reply.status, headers + annotation.headers, body)


class AnnotatedStream:
    """The events of one answer including its verdict.

    Only the event that carries the verdict is held, `tail_budget` at most. When the upstream breaks off, so does this
    stream: an error event, then the error itself, and a report with status `partial`.
    """

    def __init__(self, request: Request, session: GroundingSession, decoder: Decoder, settings: Stream) -> None:
        self.answer = Answer(request.dialect, request.expected_choices)
        self._dialect = request.dialect
        self._framing = request.dialect.framing
        self._request = request
        self._session = session
        self._decoder = decoder
        self._settings = settings
        has_comments = self._framing.comment is not None
        self._carrier = "last_event" if settings.carrier == "comment" and not has_comments else settings.carrier
        self._is_delivered = settings.carrier == "none" or request.options.detail == "none"

    async def events(self, chunks: Chunks) -> Chunks:
        """Yield the client's stream, in pieces that end where an event ends; to be primed.

        Raises UpstreamBroken or UpstreamTimeout.
        """
        split = self._framing.splitter(self._settings.max_event)
        try:
            async with aclosing(chunks), aclosing(self._decoded(chunks)) as decoded:
                yield b""
                async for chunk in decoded:
                    async for piece in self._passed(split.feed(chunk)):
                        yield piece
                    if not self._session.feed(self.answer):
                        async for piece in self._unread(split.rest(), decoded):
                            yield piece
                        return
            async for piece in self._passed(split.rest()):
                yield piece
            self._session.conclude(self.answer, cut_short=self.answer.is_cut_short)
            if self.answer.is_finished and not self._is_delivered:
                yield await self._verdict()
        except (RequestError, ValueError) as error:
            self._session.conclude(self.answer, cut_short=True)
            fault = Fault(str(error), "upstream_error", None, "stream_broken")
            yield self._framing.event(dumps(self._dialect.failure(fault)))
            raise error if isinstance(error, RequestError) else UpstreamBroken(str(error)) from error
        except BaseException:  # the client has disconnected; a promised report is still completed
            if not (self._is_delivered and self._session.is_concluding):
                self._session.abandon()
            raise

    async def _decoded(self, chunks: Chunks) -> Chunks:
        """Yield the chunks without their coding, in pieces between which the event loop takes its turn."""
        async for chunk in chunks:
            is_first = True
            for piece in self._decoder.pieces(chunk):
                if not is_first:
                    await asyncio.sleep(0)
                is_first = False
                yield piece

    async def _unread(self, split: Iterable[Event], decoded: Chunks) -> Chunks:
        """Yield the rest of a stream unread for lack of memory; its report, fetched by its id, has the reason."""
        self._is_delivered = True
        self._session.shed()
        for event in split:
            yield event.raw
        async for chunk in decoded:
            yield chunk

    async def _passed(self, events: Iterable[Event]) -> Chunks:
        """The bytes of `events`, together where nothing is waited for, with the verdict where it belongs.

        Raises EventTooLarge behind the events that came before that one.
        """
        passing: list[bytes] = []
        try:
            for event in events:
                place = await self._place(event)
                if place == "nowhere":
                    passing.append(event.raw)
                    continue
                if place == "after":
                    passing.append(event.raw)
                if passing:
                    yield b"".join(passing)
                verdict = await self._verdict(event if place == "on" else None)
                passing = [verdict + event.raw if place == "before" else verdict]
        except EventTooLarge:
            if passing:
                yield b"".join(passing)
            raise
        if passing:
            yield b"".join(passing)

    async def _place(self, event: Event) -> Literal["nowhere", "before", "on", "after"]:
        """Add an event to the answer, and return the place of the verdict relative to it.

        An event whose data is no JSON object passes unread.
        """
        if event.is_done:
            self._session.conclude(self.answer, cut_short=self.answer.is_cut_short)
            return "nowhere" if self._is_delivered else "before"
        data = event.data
        if data is None:
            return "nowhere"
        try:
            body = await parsed(data, partial(loads_object, data))
        except ValueError:
            return "nowhere"
        if not isinstance(body, dict):
            return "nowhere"
        self.answer.add(body)
        if not self.answer.is_finished:
            return "nowhere"
        side = self._dialect.carrier_side(body, self._request.body)
        if side is None:
            return "nowhere"  # there is more to come, such as the usage
        self._session.conclude(self.answer)
        if self._is_delivered:
            return "nowhere"
        if self._carrier == "last_event":
            return "on" if event.raw.count(data) == 1 else "nowhere"
        return side if self._carrier == "extra_event" else "after"

    async def _verdict(self, carrier: Event | None = None) -> bytes:
        """Return the bytes of the verdict: `carrier` with `grounding` in it, or a separate event or comment."""
        annotation = await self._session.annotation(self._settings.tail_budget)
        self._is_delivered = True
        shown = annotation.shown or b"null"
        if carrier is not None and (data := carrier.data) is not None:
            inside = self._dialect.inside
            return await parsed(data, lambda: carrier.raw.replace(data, with_member(data, "grounding", shown, inside)))
        if self._framing.comment is not None and self._carrier == "comment":
            return self._framing.comment(b"grounding " + shown)
        return self._framing.event(with_member(dumps(self.answer.own_event), "grounding", shown))


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


def _with_headers(reply: Reply, ours: Headers) -> Reply:
    return replace(reply, headers=reply.headers + ours)
