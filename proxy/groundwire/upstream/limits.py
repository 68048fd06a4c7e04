"""Limit the requests to one upstream, in flight and per minute, and queue those above the limit."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace

import structlog

from groundwire.errors import UpstreamBusy
from groundwire.limits import Capacity, ConcurrencyLimiter, LimitReached, SlidingWindow, Slot
from groundwire.upstream.http import prime
from groundwire.upstream.upstream import Upstream
from groundwire.wire import Call, Chunks, Reply

log = structlog.get_logger("groundwire.upstream")


@dataclass(frozen=True, slots=True)
class UpstreamLimits:
    """The limits of one upstream; None: no limit. Up to `queue` requests wait `queue_timeout` (seconds)."""

    max_concurrent: int | None = None
    per_minute: int | None = None
    queue: int = 64
    queue_timeout: float = 10.0


class LimitedUpstream:
    """An upstream with limits. A request is in flight until the end of its reply, or until the reply is closed."""

    def __init__(self, upstream: Upstream, limits: UpstreamLimits) -> None:
        self.name = upstream.name
        self.provider = upstream.provider
        self.forwards_documents = upstream.forwards_documents
        self.truncation_alarm = upstream.truncation_alarm
        self.is_ollama = upstream.is_ollama
        self._upstream = upstream
        capacity = Capacity(limits.max_concurrent, None, limits.queue, limits.queue_timeout)
        rate = SlidingWindow(limits.per_minute) if limits.per_minute else None
        self._limiter = ConcurrencyLimiter(capacity, rate)

    async def send(self, call: Call) -> Reply:
        """Send one call once there is capacity; see `Upstream.send`. Raises UpstreamBusy when there is none in time."""
        slot = self._limiter.try_acquire() or await self._wait()
        try:
            reply = await self._upstream.send(call)
        except BaseException:
            slot.release()
            raise
        if isinstance(reply.body, bytes):
            slot.release()
            return reply
        return replace(reply, body=await prime(_until_end(reply.body, slot)))

    async def aclose(self) -> None:
        """Close the upstream."""
        await self._upstream.aclose()

    async def _wait(self) -> Slot:
        log.debug("request.waits", upstream=self.name, waiting=self._limiter.waiting + 1)
        try:
            return await self._limiter.acquire()
        except LimitReached as reached:
            message = f"upstream '{self.name}' has no room for another request just now"
            raise UpstreamBusy(message, after=reached.after) from None


async def _until_end(chunks: Chunks, slot: Slot) -> Chunks:
    """Yield all chunks, after an empty first one, and release the slot at their end."""
    try:
        yield b""
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk
    finally:
        slot.release()
