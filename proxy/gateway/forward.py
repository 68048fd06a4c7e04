"""One call of a model server: sent, passed on or read, and recorded as a span that lasts until its last byte."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from proxy.dialects.answer import Answer
from proxy.errors import RequestError
from proxy.telemetry import Telemetry
from proxy.types import Call, Chunks, Reply
from proxy.upstream.upstream import Upstream


class Forwarding:
    """One call on its way. `operation` is its name in the GenAI conventions, `body` what its request says."""

    def __init__(self, telemetry: Telemetry, operation: str, upstream: Upstream, body: Mapping[str, Any]) -> None:
        self._telemetry = telemetry
        self._upstream = upstream
        self._span = telemetry.upstream_span(operation, upstream.provider, upstream.name, body)

    async def send(self, call: Call) -> Reply:
        """The upstream's reply; see `Upstream.send`."""
        try:
            return await self._upstream.send(
                replace(call, headers=self._telemetry.propagated(call.headers, self._span))
            )
        except BaseException as error:
            self._telemetry.failed(self._span, error)
            self._span.end()
            raise

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
