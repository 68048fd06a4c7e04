"""Calls of model servers: sent, read, passed on, and recorded as a span that lasts until the last byte."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypeVar

import structlog

from groundwire.dialects.dialect import Answer, Dialect
from groundwire.dialects.framing import Decoder
from groundwire.dialects.jsonbytes import ValuesTooLarge, dumps, is_light, loads_object
from groundwire.dialects.request import model_of, outgoing_body, read_object
from groundwire.errors import BadRequest, RequestError, UnreadableBody
from groundwire.offload import joined, offloaded
from groundwire.report import Attempt
from groundwire.telemetry import Telemetry, UpstreamCall
from groundwire.telemetry.names import Purpose
from groundwire.upstream.http import prime
from groundwire.upstream.router import Attempts, Route, Router
from groundwire.upstream.upstream import KEYS, Upstream
from groundwire.wire import Call, Chunks, Headers, Reply, without

T = TypeVar("T")

Outgoing = Callable[[Route], Awaitable[Call]]
"""Return the call to send on a route."""
End = Literal["whole", "too_long", "no_room"]
"""The reason for the end of reading a body."""

log = structlog.get_logger("groundwire.gateway")

MAX_LIST = 4 * 2**20  # bytes of the models of one upstream
_SAFE = ("GET", "HEAD", "OPTIONS")
_CREDENTIALS = KEYS | {b"openai-organization", b"openai-project"}
_INLINE = 2**12  # bytes of an answer in a content coding that are decoded on the event loop


@dataclass(frozen=True, slots=True)
class Caller:
    """The client on whose behalf a model is called: the model that it requests, and its credentials."""

    model: str = ""
    credentials: Headers = ()

    @staticmethod
    def of(model: str, headers: Headers) -> Caller:
        """Return the caller of a request. An upstream with a configured key never receives the client's."""
        return Caller(model, tuple(pair for pair in headers if pair[0] in _CREDENTIALS))


async def parsed(body: bytes, parse: Callable[[], T]) -> T:
    """Return the result of `parse` on a JSON body."""
    return parse() if is_light(body) else await offloaded(parse)


async def read_answer(raw: bytes, decoder: Decoder, dialect: Dialect, limit: int) -> tuple[bytes, Answer | None, str]:
    """Return a body, of `limit` bytes at most, without its content coding, and the answer in it or why there is none.

    Raises nothing but cancellation.
    """

    def parse() -> Answer:
        try:
            found = loads_object(body)
        except ValuesTooLarge:
            raise
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ValueError("it is no JSON object")
        return Answer.whole(dialect, found)

    try:
        is_short = decoder.is_identity or len(raw) <= _INLINE
        body = decoder.whole(raw, limit) if is_short else await offloaded(decoder.whole, raw, limit)
        return body, await parsed(body, parse), ""
    except ValueError as error:
        return raw, None, f"The answer cannot be read: {error}."


class Forwarding:
    """One call in progress. `operation` is its name in the GenAI conventions, `body` its request."""

    def __init__(
        self, telemetry: Telemetry, operation: str, body: Mapping[str, Any], purpose: Purpose = "answer"
    ) -> None:
        self._telemetry = telemetry
        self._operation = operation
        self._body = body
        self._purpose: Purpose = purpose
        self._call: UpstreamCall  # the latest attempt, from `send` on
        self.attempts: tuple[Attempt, ...] = ()
        self.counts_prompt = True

    async def send(self, route: Route, outgoing: Outgoing) -> Reply:
        """Return the reply on a route, or on one of its fallbacks; see `Upstream.send`.

        Each attempt has a separate span; the last one stays open until `end`. If the first attempt did not answer,
        `attempts` are stored and listed in headers; `counts_prompt` is the `truncation_alarm` of the upstream that
        answered.
        """

        async def attempt(to: Route) -> Reply:
            call, body = await outgoing(to), self._body
            if to is not route:
                body = {**body, "model": to.model}
            if to.upstream is not route.upstream:  # for which the client's keys are not meant
                call = replace(call, headers=without(call.headers, KEYS))
            return await self._send(to.upstream, call, body)

        if route.is_plain:
            return await attempt(route)
        reply, attempts = await Attempts(attempt, self._failed).answer(route)
        if len(attempts) == 1:
            return reply
        self.attempts = attempts
        whose = next((each for each in reversed(attempts) if each.outcome == "answered"), attempts[0])
        listed = ", ".join(f"{each.upstream}={each.outcome}" for each in attempts)
        ours = (b"x-grounding-upstream", whose.upstream.encode()), (b"x-grounding-attempts", listed.encode())
        return replace(reply, headers=reply.headers + ours)

    async def _send(self, upstream: Upstream, call: Call, body: Mapping[str, Any]) -> Reply:
        self.counts_prompt = upstream.truncation_alarm
        made = UpstreamCall(self._telemetry, self._operation, upstream.provider, upstream.name, body, self._purpose)
        self._call = made
        try:
            headers = made.propagated(call.headers)
            reply = await upstream.send(call if headers is call.headers else replace(call, headers=headers))
        except BaseException as error:
            made.failed(error)
            made.end()
            raise
        made.replied(reply.status)
        return reply

    def _failed(self, outcome: str) -> None:
        """End the record of an attempt that another one follows."""
        self._call.superseded(outcome)
        self._call.end()

    async def passed(self, reply: Reply) -> Reply:
        """The reply as it is."""
        if not self._call.is_recording:
            return reply
        return replace(reply, body=await self.recorded(chunks_of(reply)))

    async def recorded(self, chunks: Chunks, answer: Answer | None = None) -> Chunks:
        """Record chunks until their end; `answer` is their content, once they have passed."""
        return await prime(self._recorded(chunks, answer)) if self._call.is_recording else chunks

    async def _recorded(self, chunks: Chunks, answer: Answer | None) -> Chunks:
        try:
            async with aclosing(chunks):
                yield b""
                async for chunk in chunks:
                    self._call.chunk()
                    yield chunk
        except (RequestError, GeneratorExit, asyncio.CancelledError) as error:
            self._call.failed(error)
            raise
        finally:
            self.end(answer)

    def broke_off(self, error: BaseException) -> None:
        """Record the reason for a missing or incomplete answer."""
        self._call.failed(error)

    def end(self, answer: Answer | None = None) -> None:
        """End the record, with the metadata of the answer."""
        if answer is not None:
            self._call.answered(answer.id, answer.model, answer.finish_reasons, answer.usage, answer.choices)
        self._call.end()


def as_it_is(call: Call) -> Outgoing:
    """Send the same call on every route."""

    async def outgoing(_: Route) -> Call:
        return call

    return outgoing


def chunks_of(reply: Reply) -> Chunks:
    """The body of a reply as chunks, whether it is all there or still to come."""
    if not isinstance(body := reply.body, bytes):
        return body

    async def once() -> Chunks:
        yield body

    return once()


async def read(chunks: Chunks, limit: int, has_room: Callable[[int], bool] = lambda _: True) -> tuple[bytes, End]:
    """The bytes of a body as far as there is room for them, `limit` at most, and why they end there."""
    raw: list[bytes] = []
    size = 0
    async for chunk in chunks:
        raw.append(chunk)
        size += len(chunk)
        if size > limit:
            return await joined(raw, size), "too_long"
        if not has_room(len(chunk)):
            return await joined(raw, size), "no_room"
    return await joined(raw, size), "whole"


async def resumed(start: bytes, chunks: Chunks) -> Chunks:
    """A body whose start has been read already; to be primed."""
    async with aclosing(chunks):
        yield b""
        yield start
        async for chunk in chunks:
            yield chunk


@dataclass(frozen=True, slots=True)
class PassThrough:
    """Calls that are forwarded unchanged."""

    router: Router
    telemetry: Telemetry

    async def to_default(self, call: Call) -> Reply:
        """The default upstream's reply."""
        return await self._forwarded(self.router.default, call)

    async def by_model(self, operation: str, call: Call) -> Reply:
        """Return the reply of the upstream that serves the model which the body names; `grounding` never reaches it.

        A body that names none, or cannot be read, goes to the default upstream. `operation` is its name in telemetry.
        """
        try:
            body = await parsed(call.body, lambda: read_object(call.body, skipped=("input",)))
        except UnreadableBody:
            return await self.to_default(call)
        model = model_of(body)
        route = self.router.choose(model) if model else self.router.default

        async def outgoing(to: Route) -> Call:
            return replace(call, body=await parsed(call.body, lambda: outgoing_body(call.body, body, to.model)))

        forwarding = Forwarding(self.telemetry, operation, body)
        return await forwarding.passed(await forwarding.send(route, outgoing))

    async def one_model(self, call: Call, model: str) -> Reply:
        """Return the model's description from the upstream that serves it."""
        upstreams = self.router.upstreams
        route = self.router.choose(model) if len(upstreams) > 1 else self.router.default
        return await self._forwarded(replace(route, fallbacks=()), call)

    async def models(self, call: Call) -> Reply:
        """Return the models of all upstreams in one list; with a single upstream, its reply.

        An upstream that fails is left out; when all fail, the first one's error is raised. The client's key is sent to
        the default upstream only, because it may not be meant for the others.
        """
        upstreams = self.router.upstreams
        if len(upstreams) == 1:
            return await self._forwarded(self.router.default, call)
        plain = replace(call, headers=without(call.headers, (b"accept-encoding",)))
        keyless = replace(plain, headers=without(plain.headers, KEYS))
        listing = [_listed(each, keyless if place else plain) for place, each in enumerate(upstreams)]
        listed = await asyncio.gather(*listing, return_exceptions=True)
        failures = [each for each in listed if isinstance(each, RequestError)]
        for failure in failures:
            log.warning("models.left_out", reason=failure.operator)
        if failures and len(failures) == len(upstreams):
            raise failures[0]
        body = await offloaded(_joined, [each for each in listed if isinstance(each, list)])
        return Reply(200, ((b"content-type", b"application/json"),), body)

    async def _forwarded(self, route: Route, call: Call) -> Reply:
        """The reply to a call that goes on as it is. One that may change something is not sent twice."""
        if route.is_plain:
            return await route.upstream.send(call)
        attempts = Attempts(lambda to: to.upstream.send(call), lambda _: None, repeatable=call.method in _SAFE)
        reply, _ = await attempts.answer(route)
        return reply


async def _listed(upstream: Upstream, call: Call) -> Sequence[dict[str, Any]]:
    """Return the models of an upstream, none where its list cannot be read. Raises RequestError."""
    reply = await upstream.send(call)
    async with aclosing(chunks_of(reply)) as chunks:
        raw, end = await read(chunks, MAX_LIST)
    if reply.status != 200:
        raise BadRequest(f"upstream '{upstream.name}' does not list its models (status {reply.status})")
    if end != "whole":
        raise BadRequest(f"upstream '{upstream.name}' lists its models in over {MAX_LIST} bytes, or breaks off")
    return await parsed(raw, lambda: models_in(raw))


def models_in(raw: bytes) -> Sequence[dict[str, Any]]:
    """Return the models in the list of a model server, none where it is not such a list."""
    try:
        body = loads_object(raw)
    except ValueError:
        return []
    data = body.get("data") if isinstance(body, dict) else None
    return [model for model in data if isinstance(model, dict)] if isinstance(data, list) else []


def _joined(lists: Sequence[Sequence[Mapping[str, Any]]]) -> bytes:
    """Join several lists of models; each id is listed once, from the first upstream."""
    unique: dict[str, Mapping[str, Any]] = {}
    for model in chain.from_iterable(lists):
        unique.setdefault(str(model.get("id")), model)
    return dumps({"object": "list", "data": list(unique.values())})
