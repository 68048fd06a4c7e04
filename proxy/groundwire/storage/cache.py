"""An in-process cache under exact keys with a time to live. Concurrent requests for a key share one computation.

Behind it there may be values that other replicas have computed; they are fetched once per request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from sys import getsizeof
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from cachetools import TLRUCache

from groundwire.domain import Judgement
from groundwire.report import CacheUse

if TYPE_CHECKING:
    from groundwire.storage.shared import SharedValues

V = TypeVar("V")
Key = bytes

_LARGEST = 2**16  # bytes of a value that is stored
_ENTRY = 600  # bytes that an entry takes in addition to its value


def owner_of(tenant: str) -> bytes:
    """Return a short digest of a tenant's name, for values that replicas share."""
    return blake2b(tenant.encode(), digest_size=8).hexdigest().encode()


@dataclass(frozen=True, slots=True)
class CacheEntry(Generic[V]):
    """A value, the time of its computation (monotonic seconds), its owner (a tenant's digest), and its size."""

    value: V
    at: float
    owner: bytes
    size: int = 0


class Cache(Generic[V]):
    """A cache for one event loop, whose worker threads may use `recent` and `keep`.

    `ttl` is in seconds; with no entries nothing is stored.

    It holds at most `max_entries` values and about `max_size` bytes of them, by the estimate of `measure`; a value over
    64 KiB is not stored.

    `keeps` selects the values to store, `shares` those that concurrent requests may use. `further` provides values of
    other replicas, and receives new ones.
    """

    def __init__(
        self,
        max_entries: int,
        ttl: float,
        keeps: Callable[[V], bool],
        shares: Callable[[V], bool],
        clock: Callable[[], float] = time.monotonic,
        further: SharedValues[V] | None = None,
        max_size: int = 64 * 2**20,
        measure: Callable[[V], int] = lambda _: 0,
    ) -> None:
        self._least = max(1, max_size // max(1, max_entries))  # the minimum size also bounds the number
        self._entries: TLRUCache[Key, CacheEntry[V]] = TLRUCache(
            self._least * max_entries,
            lambda _, entry, __: entry.at + ttl,
            timer=clock,
            getsizeof=lambda entry: entry.size,
        )
        self._lock = Lock()
        self._in_flight: dict[Key, asyncio.Future[CacheEntry[V]]] = {}
        self._keeps = keeps
        self._shares = shares
        self._clock = clock
        self._further = further
        self._measure = measure

    @property
    def is_local(self) -> bool:
        """True if no other replica is asked for values."""
        return self._further is None

    def recent(self, keys: Sequence[Key], tenant: str = "") -> tuple[dict[Key, V], CacheUse]:
        """Return the values that this process has. Callable from any thread."""
        found = self._recent(keys)
        return {key: entry.value for key, entry in found.items()}, self._use(
            found.values(), len(keys), owner_of(tenant)
        )

    def keep(self, values: Mapping[Key, V], tenant: str = "") -> None:
        """Keep values that a worker thread has computed, as far as they hold for later, in this process."""
        owner = owner_of(tenant)
        self._store(
            {key: CacheEntry(value, self._clock(), owner) for key, value in values.items() if self._keeps(value)}
        )

    def _recent(self, keys: Sequence[Key]) -> dict[Key, CacheEntry[V]]:
        with self._lock:
            return {key: entry for key in keys if (entry := self._entries.get(key))}

    def _store(self, values: Mapping[Key, CacheEntry[V]]) -> None:
        for key, entry in values.items() if self._entries.maxsize else ():
            size = _ENTRY + self._measure(entry.value)
            if size <= min(_LARGEST, self._entries.maxsize):
                with self._lock:
                    self._entries[key] = replace(entry, size=max(size, self._least))

    def _use(self, known: Collection[CacheEntry[V]], wanted: int, owner: bytes) -> CacheUse:
        oldest = max((self._clock() - entry.at for entry in known if entry.owner == owner), default=None)
        return CacheUse(len(known), wanted - len(known), oldest)

    async def get(
        self, keys: Sequence[Key], compute: Callable[[Sequence[int]], Awaitable[Sequence[V]]], tenant: str = ""
    ) -> tuple[list[V], CacheUse]:
        """Return the value under each key, in order. `compute` receives the positions of the missing ones.

        Tenants share values, but only the age of a tenant's values is returned: others would reveal the times of their
        requests.
        """
        owner = owner_of(tenant)
        found = self._recent(keys)
        known = list(found.values())
        while missing := [key for key in dict.fromkeys(keys) if key not in found]:
            others = {key: self._in_flight[key] for key in missing if key in self._in_flight}
            if len(others) < len(missing):
                mine = [key for key in missing if key not in others]
                fetched, computed = await self._lead(mine, keys, compute, owner)
                known += fetched.values()
                found |= fetched | computed
            else:
                await asyncio.wait(others.values())
            found |= {key: entry for key, future in others.items() if (entry := self._given(future))}
        return [found[key].value for key in keys], self._use(known, len(keys), owner)

    async def _lead(
        self,
        mine: Sequence[Key],
        keys: Sequence[Key],
        compute: Callable[[Sequence[int]], Awaitable[Sequence[V]]],
        owner: bytes,
    ) -> tuple[dict[Key, CacheEntry[V]], dict[Key, CacheEntry[V]]]:
        """Fetch values of other replicas and compute the missing ones, while other requests for them wait.

        If it fails, the others compute them.
        """
        futures: dict[Key, asyncio.Future[CacheEntry[V]]] = {
            key: asyncio.get_running_loop().create_future() for key in mine
        }
        self._in_flight |= futures
        try:
            shared = await self._further.find(mine) if self._further else {}
            fetched = {
                key: CacheEntry(value, self._clock() - age, other) for key, (value, age, other) in shared.items()
            }
            missing = [key for key in mine if key not in fetched]
            positions = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))  # first of each
            values = await compute([positions[key] for key in missing]) if missing else ()
            computed = {
                key: CacheEntry(value, self._clock(), owner) for key, value in zip(missing, values, strict=True)
            }
            lasting = {key: entry for key, entry in computed.items() if self._keeps(entry.value)}
            self._store(fetched | lasting)
            if self._further and lasting:
                self._further.keep({key: entry.value for key, entry in lasting.items()}, owner)
            for key, future in futures.items():
                future.set_result(fetched[key] if key in fetched else computed[key])
            return fetched, computed
        finally:
            for key, future in futures.items():
                del self._in_flight[key]
                future.cancel()

    def _given(self, future: asyncio.Future[CacheEntry[V]]) -> CacheEntry[V] | None:
        """Return the result of a concurrent request, if it may be shared: one that ran out of time may not."""
        if not future.done() or future.cancelled():
            return None
        return future.result() if self._shares(future.result().value) else None


_JUDGEMENT, _VERDICT, _CITATION, _NUMBER = 1500, 500, 250, 250  # bytes of each without its texts


class VerdictCache(Cache[Judgement]):
    """Judgements under exact keys. Non-final ones are returned but never stored, so that they are retried."""

    def __init__(
        self,
        max_entries: int,
        ttl: float,
        clock: Callable[[], float] = time.monotonic,
        further: SharedValues[Judgement] | None = None,
        max_size: int = 64 * 2**20,
    ) -> None:
        super().__init__(
            max_entries,
            ttl,
            keeps=lambda judgement: judgement.is_final,
            shares=lambda judgement: judgement.verdict.label != "not_checked",
            clock=clock,
            further=further,
            max_size=max_size,
            measure=size_of,
        )


def size_of(judgement: Judgement) -> int:
    """Return about how many bytes a judgement takes."""
    claim = judgement.claim
    size = _JUDGEMENT + getsizeof(claim.text) + getsizeof(claim.lead) + sum(map(getsizeof, claim.cited))
    for verdict in judgement.verdicts:
        size += _VERDICT + getsizeof(verdict.reason) + _NUMBER * len(verdict.numbers)
        size += sum(_CITATION + getsizeof(each.text) + getsizeof(each.source) for each in verdict.citations)
    return size
