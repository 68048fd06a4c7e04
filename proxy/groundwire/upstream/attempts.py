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
from groundwire.upstream.retries import Outcome, never_arrived, outcome_name
from groundwire.upstream.router import Route
from groundwire.wire import Reply

log = structlog.get_logger("groundwire.upstream")

_MAX_BODY = 64 * 2**10  # bytes of a reply that is discarded: errors are short
_READ_TIMEOUT_S = 2.0


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
        attempts: list[Attempt] = []
        outcome = await self._outcome(route, attempts, route.needs_fallback)
        if route.needs_fallback(outcome):
            for fallback in route.fallbacks:
                alternative = await self._outcome(fallback, attempts, _is_error)
                if isinstance(alternative, Reply) and not _is_error(alternative):
                    return alternative, tuple(attempts)
        if isinstance(outcome, RequestError):
            raise outcome
        return outcome, tuple(attempts)

    async def _outcome(
        self, route: Route, attempts: list[Attempt], needs_fallback: Callable[[Outcome], bool]
    ) -> Outcome:
        """Return the outcome of one upstream, including its retries; a reply to be discarded has been read."""
        name, started, count = route.upstream.name, time.monotonic(), 0
        while True:
            outcome = await self._attempt(route)
            count += 1
            attempts.append(Attempt(name, route.model, outcome_name(outcome)))
            wait = self._wait(route, outcome, count, time.monotonic() - started)
            if wait is None and not needs_fallback(outcome):
                return outcome
            if isinstance(outcome, Reply):
                outcome = await _read_body(outcome)
            self.failed(attempts[-1].outcome)
            log.warning(
                "attempt.failed", upstream=name, outcome=attempts[-1].outcome, again_in_s=wait and round(wait, 3)
            )
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


async def _read_body(reply: Reply) -> Reply:
    """Read the body of a reply, so that its connection can be reused; a body that is too long is replaced."""
    if isinstance(reply.body, bytes):
        return reply
    body = bytearray()
    try:
        async with asyncio.timeout(_READ_TIMEOUT_S), aclosing(reply.body) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > _MAX_BODY:
                    return _generic_reply(reply)
    except (TimeoutError, RequestError):
        return _generic_reply(reply)
    return replace(reply, body=bytes(body))


def _generic_reply(reply: Reply) -> Reply:
    """Return the status and headers of a reply with a generic body."""
    headers = tuple(pair for pair in reply.headers if not pair[0].startswith(b"content-"))
    body = error_body(f"The model server answered with status {reply.status}.", "upstream_error")
    return Reply(reply.status, (*headers, (b"content-type", b"application/json")), body)
