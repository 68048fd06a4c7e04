"""How much each client may ask: requests per minute, and requests at once. Kept in process, without a word to anybody.

Requests per minute are a bucket that holds as many and fills steadily; a request that finds it empty is refused and
takes nothing. All that a bucket needs is the moment at which it will be full again (the generic cell rate algorithm).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

_MINUTE = 60.0
_ROUNDING = 1e-6  # seconds; a bucket that is refilled just now must not be empty by an error of floating point
BUSY_S = 1.0  # after which it is worth asking again where too many run at once; nobody knows when one ends


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may ask; None: as much as it likes."""

    requests_per_minute: int | None = None
    concurrent: int | None = None

    @property
    def any(self) -> bool:
        """Whether there is any limit."""
        return self.requests_per_minute is not None or self.concurrent is not None


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of asking for a turn; one that was granted is to be given back.

    `wait` is after how many seconds to ask again. `remaining` requests may follow at once, and in `reset` seconds all
    of them again; they are None where requests per minute have no limit. `slot` names the place that is taken.
    """

    name: str
    limits: Limits
    granted: bool = True
    wait: float = 0.0
    remaining: int | None = None
    reset: float | None = None
    slot: str | None = None


def remaining(limits: Limits, reset: float) -> tuple[int | None, float | None]:
    """How many requests are left in a bucket that is full in `reset` seconds, and these seconds; see `Turn`."""
    if limits.requests_per_minute is None:
        return None, None
    return int((_MINUTE + _ROUNDING - reset) * limits.requests_per_minute / _MINUTE), reset


class Limiter(Protocol):
    """Who gives turns to clients."""

    async def take(self, name: str, limits: Limits) -> Turn:
        """A turn for the client of that name; it raises nothing but cancellation."""

    def give_back(self, turn: Turn) -> None:
        """Takes note that what a granted turn was for has ended."""

    async def aclose(self) -> None:
        """Ends what it does beside."""


@dataclass(slots=True)
class _Bucket:
    full_at: float = 0.0
    running: int = 0


@dataclass(frozen=True, slots=True)
class LocalLimits:
    """Limits of this process. There are as many buckets as names of clients; times are in seconds of `clock`."""

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
        """There is nothing to end."""
