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
class Room:
    """The limits on concurrent requests: `requests`, and `size` bytes of their bodies.

    `queue` further requests may wait, each `patience` seconds at most.
    """

    requests: int = 1000
    size: int = 2**30
    queue: int = 1000
    patience: float = 5.0


class Admission:
    """Counts active requests and queues the waiting ones. Used from one event loop.

    `room` may change at any time; active requests are unaffected.
    """

    def __init__(self, room: Room) -> None:
        self.room = room
        self._inside = 0
        self._held = 0
        self._line: OrderedDict[asyncio.Future[None], int] = OrderedDict()  # waiting requests and their sizes
        self._is_closed = False
        self._nobody = asyncio.Event()
        self._nobody.set()

    async def enter(self, size: int) -> None:
        """Admit a request with a body of `size` bytes when there is capacity. Raises TooBusy, or Leaving during
        shutdown.
        """
        if self._is_closed:
            raise _leaving()
        if not self._line and self._has_room(size):
            self._take(size)
        else:
            await self._wait(size)

    def leave(self, size: int) -> None:
        """Release a request's slot and its bytes."""
        self._inside -= 1
        self.give_back(size)
        if not self._inside:
            self._nobody.set()

    def give_back(self, size: int) -> None:
        """Release bytes that a request turned out not to need."""
        self._held -= size
        if self._line:
            self._call_up()

    def close(self) -> None:
        """Reject further requests and all waiting ones."""
        self._is_closed = True
        while self._line:
            turn, _ = self._line.popitem(last=False)
            turn.set_exception(_leaving())

    @property
    def inside(self) -> int:
        """The number of active requests."""
        return self._inside

    @property
    def is_full(self) -> bool:
        """True if requests have to wait."""
        return bool(self._line)

    async def emptied(self) -> None:
        """Wait until there are no active requests."""
        await self._nobody.wait()

    def _has_room(self, size: int) -> bool:
        """Return whether there is capacity for a request. A body above the whole capacity is admitted alone."""
        fits = self._held + size <= self.room.size or not self._held
        return fits and self._inside < self.room.requests

    def _take(self, size: int) -> None:
        self._inside += 1
        self._held += size
        self._nobody.clear()

    async def _wait(self, size: int) -> None:
        if len(self._line) >= self.room.queue:
            raise self._busy()
        turn = asyncio.get_running_loop().create_future()
        self._line[turn] = size
        try:
            await asyncio.wait((turn,), timeout=self.room.patience)
        except asyncio.CancelledError:
            self._give_up(turn, size)
            raise
        if not turn.done():
            self._give_up(turn, size)
            raise self._busy()
        turn.result()

    def _give_up(self, turn: asyncio.Future[None], size: int) -> None:
        if self._line.pop(turn, None) is not None:
            self._call_up()  # one behind it may be small enough
        elif turn.done() and turn.exception() is None:
            self.leave(size)  # its turn came in the same moment

    def _call_up(self) -> None:
        """Admit waiting requests from the head of the queue while there is capacity."""
        while self._line:
            turn, size = next(iter(self._line.items()))
            if not self._has_room(size):
                return
            del self._line[turn]
            self._take(size)
            turn.set_result(None)

    def _busy(self) -> TooBusy:
        after = max(1, math.ceil(self.room.patience))
        return TooBusy("The proxy has too many requests in hand. Please try again.", after=after)


class Place:
    """The place of one request, if it comes to have one; with no admission there is always room."""

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
            self._admission.give_back(self._size - size)
            self._size = size

    def leave(self) -> None:
        """Release the slot: the request has been answered or has ended."""
        if self._admission is not None and self._size is not None:
            self._admission.leave(self._size)
            self._size = None


def _leaving() -> Leaving:
    return Leaving("The proxy is about to stop. Please try again: another one may answer.", after=1)
