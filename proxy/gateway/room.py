"""How much of requests and answers all verification together may hold: what is over it passes unread (RE2, DQ3)."""

from __future__ import annotations

import sys

from proxy.errors import Overload


class Room:
    """Room for `size` bytes. Used from one event loop."""

    def __init__(self, size: int = sys.maxsize) -> None:
        self._free = size

    def share(self, size: int) -> Share:
        """Room for one exchange, whose request has `size` bytes. Raises Overload when there is none."""
        share = Share(self)
        if not share.grow(size):
            raise Overload("too much is being verified")
        return share

    def take(self, size: int) -> bool:
        """Takes so many bytes, if they are free."""
        if size > self._free:
            return False
        self._free -= size
        return True

    def give_back(self, size: int) -> None:
        """Takes bytes back."""
        self._free += size


class Share:
    """What one exchange holds; it is given back at the latest when nobody knows of the exchange any more."""

    __slots__ = ("_room", "_size")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._size = 0

    def grow(self, by: int) -> bool:
        """Takes more room, if there is any."""
        if not self._room.take(by):
            return False
        self._size += by
        return True

    def give_back(self) -> None:
        """Gives all of it back; once is enough."""
        self._room.give_back(self._size)
        self._size = 0

    def __del__(self) -> None:
        self.give_back()
