"""Admission control: a limit on concurrent requests, a bounded queue with a time-out, and rejection during shutdown.

Excess requests are rejected (503 with Retry-After) instead of being delayed, so that traffic never hangs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from groundwire.errors import Leaving, TooBusy
from groundwire.limits import Capacity, ConcurrencyLimiter, LimiterClosed, LimitReached
from groundwire.limits import Slot as AcquiredSlot


@dataclass(frozen=True, slots=True)
class TrafficLimits:
    """The limits on concurrent requests: `requests`, and `body_bytes` of their bodies together.

    `queue` further requests may wait, each `queue_timeout` seconds at most.
    """

    requests: int = 1000
    body_bytes: int = 2**30
    queue: int = 1000
    queue_timeout: float = 5.0

    @property
    def capacity(self) -> Capacity:
        """The same for a limiter, which admits a body above the limit alone."""
        return Capacity(self.requests, self.body_bytes, self.queue, self.queue_timeout, oversized=True)


class Admission:
    """Counts active requests and queues the waiting ones. Used from one event loop.

    `limits` may change at any time; active requests are unaffected.
    """

    def __init__(self, limits: TrafficLimits) -> None:
        self._limiter = ConcurrencyLimiter(limits.capacity)
        self._limits = limits

    @property
    def limits(self) -> TrafficLimits:
        """The limits in effect."""
        return self._limits

    @limits.setter
    def limits(self, limits: TrafficLimits) -> None:
        self._limits = limits
        self._limiter.capacity = limits.capacity

    async def enter(self, size: int) -> AcquiredSlot:
        """Admit a request with a body of `size` bytes when there is capacity. Raises TooBusy, or Leaving during
        shutdown.
        """
        try:
            return await self._limiter.acquire(size)
        except LimitReached as reached:
            after = max(1, math.ceil(reached.after))
            raise TooBusy("The proxy has too many requests in hand. Please try again.", after=after) from None
        except LimiterClosed:
            message = "The proxy is about to stop. Please try again: another one may answer."
            raise Leaving(message, after=1) from None

    def close(self) -> None:
        """Reject further requests and all waiting ones."""
        self._limiter.close()

    @property
    def active(self) -> int:
        """The number of active requests."""
        return self._limiter.active

    @property
    def is_full(self) -> bool:
        """True if requests have to wait."""
        return self._limiter.waiting > 0

    async def wait_until_idle(self) -> None:
        """Wait until there are no active requests."""
        await self._limiter.wait_until_idle()


class Slot:
    """The slot of one request; without an admission control there is always one."""

    __slots__ = ("_admission", "_slot")

    def __init__(self, admission: Admission | None) -> None:
        self._admission = admission
        self._slot: AcquiredSlot | None = None

    async def enter(self, size: int) -> None:
        """Take the slot; see `Admission.enter`."""
        if self._admission is not None:
            self._slot = await self._admission.enter(size)

    def shrink(self, size: int) -> None:
        """Release all but `size` bytes."""
        if self._slot is not None:
            self._slot.shrink(size)

    def leave(self) -> None:
        """Release the slot: the request has been answered or has ended."""
        if self._slot is not None:
            self._slot.release()
