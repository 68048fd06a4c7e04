"""Limits per client on requests per minute and on concurrent requests, in process.

Requests per minute are a token bucket that fills steadily; a request that finds it empty is rejected and takes nothing.
The state of a bucket is the time at which it will be full again (the generic cell rate algorithm).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

_MINUTE = 60.0
_ROUNDING = 1e-6  # seconds; keeps a bucket that was just refilled from being empty by a rounding error
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
    seconds the full number; they are None if requests per minute are unlimited. `slot` identifies the concurrency slot.
    """

    name: str
    limits: Limits
    granted: bool = True
    wait: float = 0.0
    remaining: int | None = None
    reset: float | None = None
    slot: str | None = None


def remaining(limits: Limits, reset: float) -> tuple[int | None, float | None]:
    """Return the number of requests left in a bucket that is full after `reset` seconds, and `reset`; see `Turn`."""
    if limits.requests_per_minute is None:
        return None, None
    return int((_MINUTE + _ROUNDING - reset) * limits.requests_per_minute / _MINUTE), reset


class Limiter(Protocol):
    """The rate limiter of clients."""

    async def take(self, name: str, limits: Limits) -> Turn:
        """Request a turn for the client of that name; raises nothing but cancellation."""

    def give_back(self, turn: Turn) -> None:
        """Return a turn when its request has ended."""

    async def aclose(self) -> None:
        """Stop background tasks."""


@dataclass(slots=True)
class _Bucket:
    full_at: float = 0.0
    running: int = 0


@dataclass(frozen=True, slots=True)
class LocalLimits:
    """Limits of this process. There is one bucket for each client; times are in seconds of `clock`."""

    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    async def take(self, name: str, limits: Limits) -> Turn:
        """See `Limiter`."""
        bucket = self._buckets.setdefault(name, _Bucket())
        if limits.concurrent is not None and bucket.running >= limits.concurrent:
            return Turn(name, limits, granted=False, wait=BUSY_S)
        turn = Turn(name, limits)
        if limits.requests_per_minute is not None:
            turn = self._drawn(bucket, name, limits, _MINUTE / limits.requests_per_minute)
        bucket.running += turn.granted
        return turn

    def _drawn(self, bucket: _Bucket, name: str, limits: Limits, interval: float) -> Turn:
        now = self.clock()
        full_at = max(bucket.full_at, now) + interval
        if full_at - now > _MINUTE + _ROUNDING:
            return Turn(name, limits, False, full_at - now - _MINUTE, *remaining(limits, full_at - interval - now))
        bucket.full_at = full_at
        return Turn(name, limits, True, 0.0, *remaining(limits, full_at - now))

    def give_back(self, turn: Turn) -> None:
        """See `Limiter`."""
        self._buckets[turn.name].running -= turn.granted

    async def aclose(self) -> None:
        """Do nothing."""
