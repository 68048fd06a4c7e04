"""Bound the memory for requests and answers under verification: exchanges above it pass unverified."""

from __future__ import annotations

import sys

from groundwire.errors import Overload


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
        """Reserve `size` bytes, if they are free."""
        if size > self._free:
            return False
        self._free -= size
        return True

    def give_back(self, size: int) -> None:
        """Release `size` bytes."""
        self._free += size


class Share:
    """The memory reserved for one exchange; released at the latest when the object is deleted."""

    __slots__ = ("_room", "_size")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._size = 0

    def grow(self, by: int) -> bool:
        """Reserve more memory, if available."""
        if not self._room.take(by):
            return False
        self._size += by
        return True

    def give_back(self) -> None:
        """Release all of it; further calls have no effect."""
        self._room.give_back(self._size)
        self._size = 0

    def __del__(self) -> None:
        self.give_back()
