"""One call of a model server: sent, passed on or read, and recorded as a span that lasts until its last byte."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

from groundwire.dialects.answer import Answer
from groundwire.errors import RequestError
from groundwire.offload import joined
from groundwire.report import Attempt
from groundwire.telemetry import Telemetry, UpstreamCall
from groundwire.telemetry.names import Purpose
from groundwire.upstream.attempts import Attempts
from groundwire.upstream.headers import without_keys
from groundwire.upstream.http import prime
from groundwire.upstream.router import Route
from groundwire.wire import Call, Chunks, Headers, Reply

Outgoing = Callable[[Route], Awaitable[Call]]
"""Give the call that goes out on a route."""


class Forwarding:
    """One call in progress. `operation` is its name in the GenAI conventions, `body` its request."""

    def __init__(
        self, telemetry: Telemetry, operation: str, body: Mapping[str, Any], purpose: Purpose = "answer"
    ) -> None:
        self._telemetry = telemetry
        self._operation = operation
        self._body = body
        self._purpose: Purpose = purpose
        self._call: UpstreamCall | None = None
        self.attempts: tuple[Attempt, ...] = ()
        self.counts_prompt = True

    async def send(self, route: Route, outgoing: Outgoing) -> Reply:
        """Return the reply on a route, or on one of its fallbacks; see `Upstream.send`.

        Each attempt has a separate span; the last one stays open until `end`. If the first attempt did not answer,
        `attempts` are stored and listed in headers; `counts_prompt` is the `truncation_alarm` of the upstream that
        answered.
        """
        if route.is_plain:
            return await self._send(route, await outgoing(route), self._body)

        async def attempt(instead: Route) -> Reply:
            if instead is route:
                return await self._send(route, await outgoing(route), self._body)
            call, body = await outgoing(instead), {**self._body, "model": instead.model}
            if instead.upstream is not route.upstream:  # for which the client's keys are not meant
                call = replace(call, headers=without_keys(call.headers))
            return await self._send(instead, call, body)

        reply, attempts = await Attempts(attempt, self._failed).answer(route)
        if len(attempts) == 1:
            return reply
        self.attempts = attempts
        return replace(reply, headers=reply.headers + attempt_headers(attempts))

    async def _send(self, route: Route, call: Call, body: Mapping[str, Any]) -> Reply:
        upstream = route.upstream
        self.counts_prompt = upstream.truncation_alarm
        made = self._telemetry.upstream_call(self._operation, upstream.provider, upstream.name, body, self._purpose)
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
        if self._call is not None:
            self._call.superseded(outcome)
            self._call.end()

    async def passed(self, reply: Reply) -> Reply:
        """The reply as it is."""
        if self._call is None or not self._call.is_recording:
            return reply
        return replace(reply, body=await prime(self._recorded(self._call, chunks_of(reply), None)))

    async def recorded(self, chunks: Chunks, answer: Answer | None = None) -> Chunks:
        """Record chunks until their end; `answer` is their content, once they have passed."""
        if self._call is None or not self._call.is_recording:
            return chunks
        return await prime(self._recorded(self._call, chunks, answer))

    def broke_off(self, error: BaseException) -> None:
        """Record the reason for a missing or incomplete answer."""
        if self._call is not None:
            self._call.failed(error)

    def end(self, answer: Answer | None = None) -> None:
        """End the record, with the metadata of the answer."""
        if self._call is None:
            return
        if answer is not None:
            self._call.answered(answer.id, answer.model, answer.finish_reasons, answer.usage, answer.choices)
        self._call.end()

    async def _recorded(self, call: UpstreamCall, chunks: Chunks, answer: Answer | None) -> Chunks:
        try:
            async with aclosing(chunks):
                yield b""
                async for chunk in chunks:
                    call.chunk()
                    yield chunk
        except (RequestError, GeneratorExit, asyncio.CancelledError) as error:
            call.failed(error)
            raise
        finally:
            self.end(answer)


def as_it_is(call: Call) -> Outgoing:
    """Send the same call on every route."""

    async def outgoing(_: Route) -> Call:
        return call

    return outgoing


def attempt_headers(attempts: Sequence[Attempt]) -> Headers:
    """Return the headers about attempts: the outcome of each, and the upstream that answered."""
    whose = next((each for each in reversed(attempts) if each.outcome == "answered"), attempts[0])
    listed = ", ".join(f"{attempt.upstream}={attempt.outcome}" for attempt in attempts)
    return (b"x-grounding-upstream", whose.upstream.encode()), (b"x-grounding-attempts", listed.encode())


def chunks_of(reply: Reply) -> Chunks:
    """The body of a reply as chunks, whether it is all there or still to come."""
    return _once(reply.body) if isinstance(reply.body, bytes) else reply.body


End = Literal["whole", "too_long", "no_room"]
"""The reason for the end of reading a body."""


def _endless(_: int) -> bool:
    return True


async def read(chunks: Chunks, limit: int, has_room: Callable[[int], bool] = _endless) -> tuple[bytes, End]:
    """The bytes of a body as far as there is room for them, `limit` at most, and why they end there."""
    raw: list[bytes] = []
    size = 0
    end: End = "whole"
    async for chunk in chunks:
        raw.append(chunk)
        size += len(chunk)
        if size > limit:
            end = "too_long"
            break
        if not has_room(len(chunk)):
            end = "no_room"
            break
    return await joined(raw, size), end


async def resumed(start: bytes, chunks: Chunks) -> Chunks:
    """A body whose start has been read already; to be primed."""
    async with aclosing(chunks):
        yield b""
        yield start
        async for chunk in chunks:
            yield chunk


async def _once(body: bytes) -> Chunks:
    yield body
