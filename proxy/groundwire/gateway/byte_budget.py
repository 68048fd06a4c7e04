"""Bound the memory for requests and answers under verification: exchanges above it pass unverified."""

from __future__ import annotations

from groundwire.errors import Overload
from groundwire.limits import Capacity, ConcurrencyLimiter, Slot


class ByteBudget:
    """A budget of `size` bytes; None: unlimited. Used from one event loop."""

    def __init__(self, size: int | None = None) -> None:
        self._limiter = ConcurrencyLimiter(Capacity(size=size))

    def reserve(self, size: int) -> ByteReservation:
        """Reserve memory for one exchange, whose request has `size` bytes. Raises Overload when there is none."""
        slot = self._limiter.try_acquire(size)
        if slot is None:
            raise Overload("too much is being verified")
        return ByteReservation(slot)


class ByteReservation:
    """The memory reserved for one exchange; released at the latest when the object is deleted."""

    __slots__ = ("_slot",)

    def __init__(self, slot: Slot) -> None:
        self._slot = slot

    def grow(self, by: int) -> bool:
        """Reserve more memory, if available."""
        return self._slot.grow(by)

    def release(self) -> None:
        """Release all of it; further calls have no effect."""
        self._slot.shrink(0)

    def __del__(self) -> None:
        self._slot.release()
