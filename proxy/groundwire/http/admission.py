"""Admission control: a limit on concurrent requests, a bounded queue with a time-out, and rejection during shutdown.

Excess requests are rejected (503 with Retry-After) instead of being delayed, so that traffic never hangs.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from dataclasses import dataclass

from groundwire.errors import Leaving, TooBusy


@dataclass(frozen=True, slots=True)
class TrafficLimits:
    """The limits on concurrent requests: `requests`, and `body_bytes` of their bodies together.

    `queue` further requests may wait, each `queue_timeout` seconds at most.
    """

    requests: int = 1000
    body_bytes: int = 2**30
    queue: int = 1000
    queue_timeout: float = 5.0


class Admission:
    """Counts active requests and queues the waiting ones. Used from one event loop.

    `limits` may change at any time; active requests are unaffected.
    """

    def __init__(self, limits: TrafficLimits) -> None:
        self.limits = limits
        self._active = 0
        self._bytes = 0
        self._queue: OrderedDict[asyncio.Future[None], int] = OrderedDict()  # waiting requests and their sizes
        self._is_closed = False
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def enter(self, size: int) -> None:
        """Admit a request with a body of `size` bytes when there is capacity. Raises TooBusy, or Leaving during
        shutdown.
        """
        if self._is_closed:
            raise _leaving()
        if not self._queue and self._has_capacity(size):
            self._admit(size)
        else:
            await self._wait(size)

    def leave(self, size: int) -> None:
        """Release a request's slot and its bytes."""
        self._active -= 1
        self.release_bytes(size)
        if not self._active:
            self._is_idle.set()

    def release_bytes(self, size: int) -> None:
        """Release bytes that a request turned out not to need."""
        self._bytes -= size
        if self._queue:
            self._admit_waiting()

    def close(self) -> None:
        """Reject further requests and all waiting ones."""
        self._is_closed = True
        while self._queue:
            turn, _ = self._queue.popitem(last=False)
            turn.set_exception(_leaving())

    @property
    def active(self) -> int:
        """The number of active requests."""
        return self._active

    @property
    def is_full(self) -> bool:
        """True if requests have to wait."""
        return bool(self._queue)

    async def wait_until_idle(self) -> None:
        """Wait until there are no active requests."""
        await self._is_idle.wait()

    def _has_capacity(self, size: int) -> bool:
        """Return whether there is capacity for a request. A body above the whole capacity is admitted alone."""
        fits = self._bytes + size <= self.limits.body_bytes or not self._bytes
        return fits and self._active < self.limits.requests

    def _admit(self, size: int) -> None:
        self._active += 1
        self._bytes += size
        self._is_idle.clear()

    async def _wait(self, size: int) -> None:
        if len(self._queue) >= self.limits.queue:
            raise self._busy()
        turn = asyncio.get_running_loop().create_future()
        self._queue[turn] = size
        try:
            await asyncio.wait((turn,), timeout=self.limits.queue_timeout)
        except asyncio.CancelledError:
            self._leave_queue(turn, size)
            raise
        if not turn.done():
            self._leave_queue(turn, size)
            raise self._busy()
        turn.result()

    def _leave_queue(self, turn: asyncio.Future[None], size: int) -> None:
        if self._queue.pop(turn, None) is not None:
            self._admit_waiting()  # one behind it may be small enough
        elif turn.done() and turn.exception() is None:
            self.leave(size)  # its turn came in the same moment

    def _admit_waiting(self) -> None:
        """Admit waiting requests from the head of the queue while there is capacity."""
        while self._queue:
            turn, size = next(iter(self._queue.items()))
            if not self._has_capacity(size):
                return
            del self._queue[turn]
            self._admit(size)
            turn.set_result(None)

    def _busy(self) -> TooBusy:
        after = max(1, math.ceil(self.limits.queue_timeout))
        return TooBusy("The proxy has too many requests in hand. Please try again.", after=after)


class Slot:
    """The slot of one request; without an admission control there is always one."""

    __slots__ = ("_admission", "_size")

    def __init__(self, admission: Admission | None) -> None:
        self._admission = admission
        self._size: int | None = None

    async def enter(self, size: int) -> None:
        """Take the slot; see `Admission.enter`."""
        if self._admission is not None:
            await self._admission.enter(size)
            self._size = size

    def shrink(self, size: int) -> None:
        """Release all but `size` bytes."""
        if self._admission is not None and self._size is not None and size < self._size:
            self._admission.release_bytes(self._size - size)
            self._size = size

    def leave(self) -> None:
        """Release the slot: the request has been answered or has ended."""
        if self._admission is not None and self._size is not None:
            self._admission.leave(self._size)
            self._size = None


def _leaving() -> Leaving:
    return Leaving("The proxy is about to stop. Please try again: another one may answer.", after=1)
