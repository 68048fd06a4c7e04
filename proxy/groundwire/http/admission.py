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
class TrafficLimits(Capacity):
    """The limits on concurrent requests and on the bytes of their bodies; a body above them is admitted alone."""

    slots: int | None = 1000
    size: int | None = 2**30
    queue: int = 1000
    queue_timeout: float = 5.0
    oversized: bool = True


class Admission(ConcurrencyLimiter):
    """Counts active requests and queues the waiting ones."""

    async def acquire(self, size: int = 0) -> AcquiredSlot:
        """Admit a request with a body of `size` bytes when there is capacity. Raises TooBusy, or Leaving during
        shutdown.
        """
        try:
            return await super().acquire(size)
        except LimitReached as reached:
            after = max(1, math.ceil(reached.after))
            raise TooBusy("The proxy has too many requests in hand. Please try again.", after=after) from None
        except LimiterClosed:
            message = "The proxy is about to stop. Please try again: another one may answer."
            raise Leaving(message, after=1) from None

    @property
    def is_full(self) -> bool:
        """True if requests have to wait."""
        return self.waiting > 0


class Slot:
    """The slot of one request; without an admission control there is always one."""

    __slots__ = ("_admission", "_slot")

    def __init__(self, admission: Admission | None) -> None:
        self._admission = admission
        self._slot: AcquiredSlot | None = None

    async def enter(self, size: int) -> None:
        """Take the slot; see `Admission.acquire`."""
        if self._admission is not None:
            self._slot = await self._admission.acquire(size)

    def shrink(self, size: int) -> None:
        """Release all but `size` bytes."""
        if self._slot is not None:
            self._slot.shrink(size)

    def leave(self) -> None:
        """Release the slot: the request has been answered or has ended."""
        if self._slot is not None:
            self._slot.release()
