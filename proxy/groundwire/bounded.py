"""A cache of values that are expensive to compute, bounded in bytes."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ENTRY_BYTES = 2_000  # overhead of an entry, added to the size that the caller gives


class BoundedCache(Generic[K, V]):
    """A thread-safe LRU cache, bounded by the total size of its entries in bytes as estimated by the callers.

    Two threads that miss the same key both compute its value, so the value must depend on the key alone.
    """

    def __init__(self, max_bytes: int) -> None:
        self._entries: LRUCache[K, tuple[V, int]] = LRUCache(max_bytes, getsizeof=lambda entry: _ENTRY_BYTES + entry[1])
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The estimated size of all entries in bytes."""
        return int(self._entries.currsize)

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        with self._lock:
            entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Store a value of about `size` bytes, evicting the least recently used. One too large to fit is dropped."""
        with self._lock, suppress(ValueError):  # too large
            self._entries[key] = (value, size)
