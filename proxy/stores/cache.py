"""Values that were computed before, kept in process for a while under exact keys. Equal work in flight runs once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cachetools import TTLCache

from proxy.types import CacheUse

V = TypeVar("V")
Key = bytes


@dataclass(frozen=True, slots=True)
class Kept(Generic[V]):
    """A value and when it was computed (monotonic seconds)."""

    value: V
    at: float


class Cache(Generic[V]):
    """A cache touched by the event loop's thread only. `ttl` is in seconds; no entries: nothing is kept.

    `keeps` says which values hold for later, `shares` which hold for others who wait for the same just now.
    """

    def __init__(
        self,
        max_entries: int,
        ttl: float,
        keeps: Callable[[V], bool],
        shares: Callable[[V], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept: TTLCache[Key, Kept[V]] = TTLCache(max_entries, ttl, timer=clock)
        self._in_flight: dict[Key, asyncio.Future[Kept[V]]] = {}
        self._keeps = keeps
        self._shares = shares
        self._clock = clock

    async def get(
        self, keys: Sequence[Key], compute: Callable[[Sequence[int]], Awaitable[Sequence[V]]]
    ) -> tuple[list[V], CacheUse]:
        """The value under each key, in order. `compute` is given the positions of those that nobody has yet."""
        found: dict[Key, Kept[V]] = {key: kept for key in keys if (kept := self._kept.get(key))}
        hits = len(found)
        oldest = max((self._clock() - kept.at for kept in found.values()), default=None)
        while missing := [key for key in dict.fromkeys(keys) if key not in found]:
            others = {key: self._in_flight[key] for key in missing if key in self._in_flight}
            if len(others) < len(missing):
                found |= await self._lead([key for key in missing if key not in others], keys, compute)
            else:
                await asyncio.wait(others.values())
            found |= {key: kept for key, future in others.items() if (kept := self._given(future))}
        return [found[key].value for key in keys], CacheUse(hits, len(keys) - hits, oldest)

    async def _lead(
        self, mine: Sequence[Key], keys: Sequence[Key], compute: Callable[[Sequence[int]], Awaitable[Sequence[V]]]
    ) -> dict[Key, Kept[V]]:
        """Computes what nobody has while others who want the same wait; if it fails, they do it themselves."""
        futures: dict[Key, asyncio.Future[Kept[V]]] = {key: asyncio.get_running_loop().create_future() for key in mine}
        self._in_flight |= futures
        try:
            values = await compute([keys.index(key) for key in mine])
            for (key, future), value in zip(futures.items(), values, strict=True):
                future.set_result(kept := Kept(value, self._clock()))
                if self._keeps(value) and self._kept.maxsize:
                    self._kept[key] = kept
            return {key: future.result() for key, future in futures.items()}
        finally:
            for key, future in futures.items():
                del self._in_flight[key]
                future.cancel()

    def _given(self, future: asyncio.Future[Kept[V]]) -> Kept[V] | None:
        """What another one found, if it holds for everybody: its lack of time does not."""
        if not future.done() or future.cancelled():
            return None
        return future.result() if self._shares(future.result().value) else None
