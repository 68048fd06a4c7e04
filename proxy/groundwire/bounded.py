"""Caches that are bounded in size: LRU, LRU with expiry, and one for values that are expensive to compute.

`LRUCache`, `TLRUCache` and `TTLCache` have the interface of the classes of these names in cachetools. They are not
thread-safe.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from contextlib import suppress
from threading import Lock
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ENTRY_BYTES = 2_000  # overhead of an entry, added to the size that the caller gives


def _one(_: Any) -> int:
    return 1


class LRUCache(MutableMapping[K, V]):
    """A mapping of at most `maxsize` in total, by `getsizeof`, that evicts the least recently used values first.

    Raises ValueError for a value larger than `maxsize`.
    """

    def __init__(self, maxsize: int, getsizeof: Callable[[V], int] = _one) -> None:
        self.maxsize = maxsize
        self.currsize = 0
        self._getsizeof = getsizeof
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __getitem__(self, key: K) -> V:
        value = self._entries[key][0]
        self._entries.move_to_end(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        size = self._getsizeof(value)
        if size > self.maxsize:
            raise ValueError("value too large")
        if key in self._entries:
            del self[key]
        while self.currsize + size > self.maxsize:
            del self[next(iter(self._entries))]
        self._entries[key] = (value, size)
        self.currsize += size

    def __delitem__(self, key: K) -> None:
        self.currsize -= self._entries.pop(key)[1]

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class TLRUCache(LRUCache[K, V]):
    """An LRU cache whose values also expire, at the time by `timer` that `ttu(key, value, now)` returns.

    An expired value is missing. It is removed when it is looked up, or evicted as the least recently used.
    """

    def __init__(
        self,
        maxsize: int,
        ttu: Callable[[K, V, float], float],
        timer: Callable[[], float] = time.monotonic,
        getsizeof: Callable[[V], int] = _one,
    ) -> None:
        super().__init__(maxsize, getsizeof)
        self._ttu = ttu
        self._timer = timer
        self._expiry: dict[K, float] = {}

    def __getitem__(self, key: K) -> V:
        if key not in self:
            raise KeyError(key)
        return super().__getitem__(key)

    def __setitem__(self, key: K, value: V) -> None:
        now = self._timer()
        expiry = self._ttu(key, value, now)
        if expiry > now:
            super().__setitem__(key, value)
            self._expiry[key] = expiry
        elif key in self._entries:
            del self[key]

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        self._expiry.pop(key, None)

    def __contains__(self, key: object) -> bool:
        if key not in self._entries:
            return False
        if self._timer() < self._expiry[key]:  # type: ignore[index]
            return True
        del self[key]  # type: ignore[arg-type]
        return False

    def __iter__(self) -> Iterator[K]:
        return iter([key for key in [*self._entries] if key in self])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class TTLCache(TLRUCache[K, V]):
    """An LRU cache whose values expire `ttl` seconds after they were stored."""

    def __init__(
        self,
        maxsize: int,
        ttl: float,
        timer: Callable[[], float] = time.monotonic,
        getsizeof: Callable[[V], int] = _one,
    ) -> None:
        super().__init__(maxsize, lambda _, __, now: now + ttl, timer, getsizeof)


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
        return self._entries.currsize

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None."""
        with self._lock:
            entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Store a value of about `size` bytes, evicting the least recently used. One too large to fit is dropped."""
        with self._lock, suppress(ValueError):  # too large
            self._entries[key] = (value, size)
