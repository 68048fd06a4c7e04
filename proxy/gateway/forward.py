"""One call of a model server: sent, passed on or read, and recorded as a span that lasts until its last byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from opentelemetry.trace import INVALID_SPAN, Span

from proxy.dialects.answer import Answer
from proxy.errors import RequestError
from proxy.telemetry import Telemetry
from proxy.types import Attempt, Call, Chunks, Headers, Reply
from proxy.upstream.attempts import Attempts
from proxy.upstream.headers import without_keys
from proxy.upstream.router import Route


class Forwarding:
    """One call on its way. `operation` is its name in the GenAI conventions, `body` what its request says."""

    def __init__(self, telemetry: Telemetry, operation: str, body: Mapping[str, Any]) -> None:
        self._telemetry = telemetry
        self._operation = operation
        self._body = body
        self._span: Span = INVALID_SPAN
        self.attempts: tuple[Attempt, ...] = ()
        self.counts_prompt = True

    async def send(self, route: Route, outgoing: Callable[[Route], Call]) -> Reply:
        """The reply to what is `outgoing` on a route, or on one of its fallbacks; see `Upstream.send`.

        Each attempt has a span of its own; the last one's stays open until `end`. `attempts` are kept when the reply is
        not that of the first, and told in its headers; `counts_prompt` is the `truncation_alarm` of who gave it.
        """
        if route.is_plain:
            return await self._send(route, outgoing(route))

        async def attempt(instead: Route) -> Reply:
            call = outgoing(instead)
            is_other = instead.upstream is not route.upstream  # which the client's keys are not meant for
            return await self._send(instead, replace(call, headers=without_keys(call.headers)) if is_other else call)

        reply, attempts = await Attempts(attempt, self._failed).answer(route)
        if len(attempts) == 1:
            return reply
        self.attempts = attempts
        return replace(reply, headers=reply.headers + told(attempts))

    async def _send(self, route: Route, call: Call) -> Reply:
        upstream = route.upstream
        self.counts_prompt = upstream.truncation_alarm
        self._span = self._telemetry.upstream_span(self._operation, upstream.provider, upstream.name, self._body)
        try:
            return await upstream.send(replace(call, headers=self._telemetry.propagated(call.headers, self._span)))
        except BaseException as error:
            self._telemetry.failed(self._span, error)
            self._span.end()
            raise

    def _failed(self, outcome: str) -> None:
        """Ends the span of an attempt that another one follows."""
        if self._span.is_recording():
            self._telemetry.passed_over(self._span, outcome)
            self._span.end()
        self._span = INVALID_SPAN

    def passed(self, reply: Reply) -> Reply:
        """The reply as it is."""
        return replace(reply, body=self.within(chunks_of(reply)))

    def within(self, chunks: Chunks, answer: Answer | None = None) -> Chunks:
        """The same chunks, recorded to their end; `answer` is what they hold, once they have passed."""
        return self._recorded(chunks, answer) if self._span.is_recording() else chunks

    def end(self, answer: Answer | None = None) -> None:
        """Ends the record, with what the answer says of itself."""
        if answer is not None:
            self._telemetry.answered(self._span, answer.id, answer.model, answer.finish_reasons, answer.usage)
        self._span.end()

    async def _recorded(self, chunks: Chunks, answer: Answer | None) -> Chunks:
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
        except RequestError as error:
            self._telemetry.failed(self._span, error)
            raise
        finally:
            self.end(answer)


def told(attempts: Sequence[Attempt]) -> Headers:
    """The headers that tell of attempts: how each ended, and whose reply this is."""
    whose = next((each for each in reversed(attempts) if each.outcome == "answered"), attempts[0])
    listed = ", ".join(f"{attempt.upstream}={attempt.outcome}" for attempt in attempts)
    return (b"x-grounding-upstream", whose.upstream.encode()), (b"x-grounding-attempts", listed.encode())


def chunks_of(reply: Reply) -> Chunks:
    """The body of a reply as chunks, whether it is all there or still to come."""
    return _once(reply.body) if isinstance(reply.body, bytes) else reply.body


async def read(chunks: Chunks, limit: int) -> tuple[bytes, bool]:
    """The bytes of a body, and whether that is all of it: reading stops once it is over the limit."""
    raw = bytearray()
    async for chunk in chunks:
        raw += chunk
        if len(raw) > limit:
            return bytes(raw), False
    return bytes(raw), True


async def resumed(start: bytes, chunks: Chunks) -> Chunks:
    """A body whose start has been read already."""
    async with aclosing(chunks):
        yield start
        async for chunk in chunks:
            yield chunk


async def _once(body: bytes) -> Chunks:
    yield body
