"""A cache of values that are expensive to compute, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """The values used last, of `max_bytes` in all as their callers estimate it. Any thread may use it.

    Two threads that miss the same key both compute its value, which therefore must depend on the key alone.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The estimated bytes of all values."""
        return self._bytes

    def get(self, key: K) -> V | None:
        """Return the value under a key, if it is there."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Store a value of about `size` bytes; those used longest ago give way. One too large for all is not stored."""
        if size > self._max_bytes:
            return
        with self._lock:
            self._bytes += size - self._entries.pop(key, (None, 0))[1]
            self._entries[key] = (value, size)
            while self._bytes > self._max_bytes:
                self._bytes -= self._entries.popitem(last=False)[1][1]
