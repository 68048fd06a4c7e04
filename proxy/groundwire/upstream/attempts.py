"""Make attempts at one answer: retry an upstream and try its fallbacks, as the route defines.

All of this happens before the first byte of a reply: a reply that a client has begun to receive is never restarted.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

import structlog

from groundwire.dialects.error import error_body
from groundwire.errors import RequestError
from groundwire.report import Attempt
from groundwire.upstream.retries import Outcome, named, never_arrived
from groundwire.upstream.router import Route
from groundwire.wire import Reply

log = structlog.get_logger("groundwire.upstream")

_MOST_KEPT = 64 * 2**10  # bytes of a reply that is discarded: errors are short
_KEPT_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Attempts:
    """Tries a route and its fallbacks.

    `send` makes one attempt; `failed` is called with the outcome of each unsuccessful one as soon as it is known.
    `repeatable` is False if a request that may have arrived must not be sent again.
    """

    send: Callable[[Route], Awaitable[Reply]]
    failed: Callable[[str], None]
    repeatable: bool = True

    async def answer(self, route: Route) -> tuple[Reply, tuple[Attempt, ...]]:
        """Return the first reply that counts as an answer, and the outcomes of all attempts.

        If no fallback answers, the result is that of the chosen upstream: its reply, or its RequestError.
        """
        made: list[Attempt] = []
        outcome = await self._outcome(route, made, route.is_passed_over)
        if route.is_passed_over(outcome):
            for fallback in route.fallbacks:
                instead = await self._outcome(fallback, made, _is_error)
                if isinstance(instead, Reply) and not _is_error(instead):
                    return instead, tuple(made)
        if isinstance(outcome, RequestError):
            raise outcome
        return outcome, tuple(made)

    async def _outcome(self, route: Route, made: list[Attempt], passed_over: Callable[[Outcome], bool]) -> Outcome:
        """Return the outcome of one upstream, including its retries; a reply to be discarded has been read."""
        name, started, count = route.upstream.name, time.monotonic(), 0
        while True:
            outcome = await self._attempt(route)
            count += 1
            made.append(Attempt(name, route.model, named(outcome)))
            wait = self._wait(route, outcome, count, time.monotonic() - started)
            if wait is None and not passed_over(outcome):
                return outcome
            if isinstance(outcome, Reply):
                outcome = await _kept(outcome)
            self.failed(made[-1].outcome)
            log.warning("attempt.failed", upstream=name, outcome=made[-1].outcome, again_in_s=wait and round(wait, 3))
            if wait is None:
                return outcome
            await asyncio.sleep(wait)

    def _wait(self, route: Route, outcome: Outcome, count: int, elapsed: float) -> float | None:
        if not (self.repeatable or never_arrived(outcome)):
            return None
        return route.retries.wait(outcome, count, elapsed, time.time(), random.random())  # noqa: S311 - spreads load

    async def _attempt(self, route: Route) -> Outcome:
        try:
            return await self.send(route)
        except RequestError as error:
            return error


def _is_error(outcome: Outcome) -> bool:
    """Return whether a fallback failed too: the first upstream's error is then more informative."""
    return not isinstance(outcome, Reply) or outcome.status >= 400


async def _kept(reply: Reply) -> Reply:
    """Read the body of a reply, so that its connection can be reused; a body that is too long is replaced."""
    if isinstance(reply.body, bytes):
        return reply
    kept = bytearray()
    try:
        async with asyncio.timeout(_KEPT_WITHIN_S), aclosing(reply.body) as chunks:
            async for chunk in chunks:
                kept += chunk
                if len(kept) > _MOST_KEPT:
                    return _told(reply)
    except (TimeoutError, RequestError):
        return _told(reply)
    return replace(reply, body=bytes(kept))


def _told(reply: Reply) -> Reply:
    """Return the status and headers of a reply with a generic body."""
    headers = tuple(pair for pair in reply.headers if not pair[0].startswith(b"content-"))
    body = error_body(f"The model server answered with status {reply.status}.", "upstream_error")
    return Reply(reply.status, (*headers, (b"content-type", b"application/json")), body)
