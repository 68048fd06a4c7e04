"""Limit the requests to one upstream, in flight and per minute, and queue those above the limit."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right, insort
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace

import structlog

from groundwire.errors import UpstreamBusy
from groundwire.upstream.http import prime
from groundwire.upstream.upstream import Upstream
from groundwire.wire import Call, Chunks, Reply

log = structlog.get_logger("groundwire.upstream")

_WINDOW_S = 60.0


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
        self._limits = limits
        self._room = asyncio.Semaphore(limits.max_concurrent) if limits.max_concurrent else None
        self._pace = Pace(limits.per_minute) if limits.per_minute else None
        self._waiting = 0

    def go_on_from(self, before: LimitedUpstream) -> None:
        """Take over the counts of `before` where the limit is unchanged."""
        if before._limits.max_concurrent == self._limits.max_concurrent:
            self._room = before._room
        if before._limits.per_minute == self._limits.per_minute:
            self._pace = before._pace

    async def send(self, call: Call) -> Reply:
        """Send one call once there is capacity; see `Upstream.send`. Raises UpstreamBusy when there is none in time."""
        until = time.monotonic() + self._limits.queue_timeout
        await self._enter(until)
        try:
            await self._keep_pace(until)
            reply = await self._upstream.send(call)
        except BaseException:
            self._leave()
            raise
        if isinstance(reply.body, bytes):
            self._leave()
            return reply
        return replace(reply, body=await prime(self._until_its_end(reply.body)))

    async def aclose(self) -> None:
        """Close the upstream."""
        await self._upstream.aclose()

    async def _until_its_end(self, chunks: Chunks) -> Chunks:
        try:
            yield b""
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
        finally:
            self._leave()

    async def _enter(self, until: float) -> None:
        """Wait for a free slot."""
        if self._room is None:
            return
        if not self._room.locked():
            await self._room.acquire()
            return
        with self._in_line():
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    await self._room.acquire()
            except TimeoutError:
                raise self._busy(self._limits.queue_timeout) from None

    def _leave(self) -> None:
        if self._room is not None:
            self._room.release()

    async def _keep_pace(self, until: float) -> None:
        """Wait until the limit per minute allows another request."""
        if self._pace is None:
            return
        now = time.monotonic()
        at = self._pace.reserve(now)
        if at <= now:
            return
        try:
            if at > until:
                raise self._busy(at - now)
            with self._in_line():
                await asyncio.sleep(at - now)
        except BaseException:
            self._pace.give_up(at)
            raise

    @contextmanager
    def _in_line(self) -> Iterator[None]:
        if self._waiting >= self._limits.queue:
            raise self._busy(self._limits.queue_timeout)
        self._waiting += 1
        log.debug("request.waits", upstream=self.name, waiting=self._waiting)
        try:
            yield
        finally:
            self._waiting -= 1

    def _busy(self, after: float) -> UpstreamBusy:
        return UpstreamBusy(f"upstream '{self.name}' has no room for another request just now", after=after)


class Pace:
    """A sliding window of request starts, at most `per_minute` within 60 seconds."""

    def __init__(self, per_minute: int) -> None:
        self._most = per_minute
        self._starts: list[float] = []

    def reserve(self, now: float) -> float:
        """Reserve and return the time at which the next request may start."""
        del self._starts[: bisect_right(self._starts, now - _WINDOW_S)]
        full = len(self._starts) >= self._most
        at = max(now, self._starts[-self._most] + _WINDOW_S) if full else now
        insort(self._starts, at)
        return at

    def give_up(self, at: float) -> None:
        """Release an unused reservation."""
        self._starts.remove(at)
