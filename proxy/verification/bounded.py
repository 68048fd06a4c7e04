"""A cache of values that are expensive to compute, bounded in bytes."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ENTRY_BYTES = 2_000  # of an entry without any text: its key, its place and the objects around its value


class BoundedCache(Generic[K, V]):
    """The values used last, of `max_bytes` in all as their callers estimate it. Any thread may use it.

    Two threads that miss the same key both compute its value, which therefore must depend on the key alone.
    """

    def __init__(self, max_bytes: int) -> None:
        self._entries: LRUCache[K, tuple[V, int]] = LRUCache(max_bytes, getsizeof=lambda entry: _ENTRY_BYTES + entry[1])
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The estimated bytes of all entries."""
        return int(self._entries.currsize)

    def get(self, key: K) -> V | None:
        """Return the value under a key, if it is there."""
        with self._lock:
            entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Store a value of about `size` bytes; those used longest ago give way. One too large for all is not stored."""
        with self._lock, suppress(ValueError):  # too large
            self._entries[key] = (value, size)
