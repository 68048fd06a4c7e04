"""Who is let in: so many requests at once, a bounded line of others who wait a short while, and nobody at the end.

What is over that is told to come back (503 with Retry-After) instead of being kept waiting: traffic never hangs.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from dataclasses import dataclass

from proxy.errors import Leaving, TooBusy


@dataclass(frozen=True, slots=True)
class Room:
    """How much is taken at once: `requests`, and `size` bytes of their bodies.

    `queue` requests more may wait for room, each `patience` seconds at most.
    """

    requests: int = 1000
    size: int = 2**30
    queue: int = 1000
    patience: float = 5.0


class Admission:
    """Counts who is inside, and keeps the line of those who wait. Used from one event loop.

    `room` may change at any time; those who are inside stay.
    """

    def __init__(self, room: Room) -> None:
        self.room = room
        self._inside = 0
        self._held = 0
        self._line: OrderedDict[asyncio.Future[None], int] = OrderedDict()  # whose turn it will be, with their sizes
        self._is_closed = False
        self._nobody = asyncio.Event()
        self._nobody.set()

    async def enter(self, size: int) -> None:
        """Lets in a request with a body of `size` bytes, when there is room. Raises TooBusy, and Leaving at the end."""
        if self._is_closed:
            raise _leaving()
        if not self._line and self._has_room(size):
            self._take(size)
        else:
            await self._wait(size)

    def leave(self, size: int) -> None:
        """Gives back a request's place and its bytes."""
        self._inside -= 1
        self.give_back(size)
        if not self._inside:
            self._nobody.set()

    def give_back(self, size: int) -> None:
        """Gives back bytes that a request turned out not to need."""
        self._held -= size
        if self._line:
            self._call_up()

    def close(self) -> None:
        """Lets nobody in any more; those who wait are told."""
        self._is_closed = True
        while self._line:
            turn, _ = self._line.popitem(last=False)
            turn.set_exception(_leaving())

    @property
    def inside(self) -> int:
        """How many requests are being answered."""
        return self._inside

    @property
    def is_full(self) -> bool:
        """Whether requests have to wait."""
        return bool(self._line)

    async def emptied(self) -> None:
        """Returns when nobody is inside."""
        await self._nobody.wait()

    def _has_room(self, size: int) -> bool:
        """Whether one more goes in. A body over all the room goes in alone, rather than never."""
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
        """Lets in those at the head of the line for whom there is room now."""
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
        """Takes the place; see `Admission.enter`."""
        if self._admission is not None:
            await self._admission.enter(size)
            self._size = size

    def shrink(self, size: int) -> None:
        """Keeps room for so many bytes only."""
        if self._admission is not None and self._size is not None and size < self._size:
            self._admission.give_back(self._size - size)
            self._size = size

    def leave(self) -> None:
        """Gives the place back: the request has its reply, or will never have one."""
        if self._admission is not None and self._size is not None:
            self._admission.leave(self._size)
            self._size = None


def _leaving() -> Leaving:
    return Leaving("The proxy is about to stop. Please try again: another one may answer.", after=1)
