"""Attempts at one answer: an upstream is asked again, and others in its place, as its route says.

All of that comes before the first byte of a reply: what a client has begun to see is never begun anew.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

import structlog

from proxy.dialects.error import error_body
from proxy.errors import RequestError
from proxy.types import Attempt, Reply
from proxy.upstream.retries import Outcome, named, never_arrived
from proxy.upstream.router import Route

log = structlog.get_logger("groundwire.upstream")

_MOST_KEPT = 64 * 2**10  # bytes of a reply that is passed over: errors are short
_KEPT_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Attempts:
    """Tries a route and its fallbacks.

    `send` makes one attempt; `failed` is told the outcome of each that is not the answer, as soon as that is known.
    `repeatable`: whether a request that may have arrived can be sent once more.
    """

    send: Callable[[Route], Awaitable[Reply]]
    failed: Callable[[str], None]
    repeatable: bool = True

    async def answer(self, route: Route) -> tuple[Reply, tuple[Attempt, ...]]:
        """The first reply that counts as an answer, and how all attempts ended.

        When no fallback has one, it is what there would be without them: the reply of the upstream that was chosen, or
        the RequestError that it ended with.
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
        """How asking one upstream ends, its retries included; a reply that will be passed over has been read."""
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
    """Whether a fallback does no better: its own refusal would only hide what was wrong at first."""
    return not isinstance(outcome, Reply) or outcome.status >= 400


async def _kept(reply: Reply) -> Reply:
    """A reply with its body read, so that its connection is free for the next; of one too long, only its status."""
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
    """The status of a reply, and its headers, with a body of ours."""
    headers = tuple(pair for pair in reply.headers if not pair[0].startswith(b"content-"))
    body = error_body(f"The model server answered with status {reply.status}.", "upstream_error")
    return Reply(reply.status, (*headers, (b"content-type", b"application/json")), body)
