"""Limits per client on requests per minute and on concurrent requests, in process.

Requests per minute are a token bucket that fills steadily; a request that finds it empty is rejected and takes nothing.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from groundwire.limits import MINUTE_S, ROUNDING_S, Capacity, ConcurrencyLimiter, Slot, TokenBucket

BUSY_S = 1.0  # wait to suggest when too many requests run concurrently; their ends are unknown


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a client; None: unlimited."""

    requests_per_minute: int | None = None
    concurrent: int | None = None

    @property
    def any(self) -> bool:
        """True if there is any limit."""
        return self.requests_per_minute is not None or self.concurrent is not None


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of a request for a turn; a granted one must be returned.

    `wait` is the number of seconds until the next try. `remaining` requests may follow at once, and after `reset`
    seconds the full number; they are None if requests per minute are unlimited. A granted turn holds a `slot` of this
    process, or a `lease` from a store that replicas share.
    """

    name: str
    limits: Limits
    granted: bool = True
    wait: float = 0.0
    remaining: int | None = None
    reset: float | None = None
    slot: Slot | None = None
    lease: str | None = None


def remaining(limits: Limits, reset: float) -> tuple[int | None, float | None]:
    """Return the number of requests left in a bucket that is full after `reset` seconds, and `reset`; see `Turn`."""
    if limits.requests_per_minute is None:
        return None, None
    return int((MINUTE_S + ROUNDING_S - reset) * limits.requests_per_minute / MINUTE_S), reset


class LocalLimits:
    """The rate limiter of clients in this process; times are in seconds of `clock`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._concurrency: defaultdict[str, ConcurrencyLimiter] = defaultdict(lambda: ConcurrencyLimiter(Capacity()))
        self._buckets: defaultdict[str, TokenBucket] = defaultdict(TokenBucket)

    async def take(self, name: str, limits: Limits) -> Turn:
        """Request a turn for the client of that name; raises nothing but cancellation."""
        concurrency = self._concurrency[name]
        concurrency.limits = Capacity(limits.concurrent)
        slot = concurrency.try_acquire()
        if slot is None:
            return Turn(name, limits, granted=False, wait=BUSY_S)
        if limits.requests_per_minute is None:
            return Turn(name, limits, slot=slot)
        wait, reset = self._buckets[name].take(limits.requests_per_minute, self._clock())
        if wait:
            slot.release()
        return Turn(name, limits, not wait, wait, *remaining(limits, reset), None if wait else slot)

    def give_back(self, turn: Turn) -> None:
        """Return a turn when its request has ended."""
        if turn.slot is not None:
            turn.slot.release()

    async def aclose(self) -> None:
        """Stop background tasks."""
