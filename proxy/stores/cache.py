"""Values that were computed before, kept in process for a while under exact keys. Equal work in flight runs once.

Behind the process's own there may be values that other replicas have computed; they are asked for once per request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, Protocol, TypeVar

from cachetools import TLRUCache

from proxy.types import CacheUse

V = TypeVar("V")
Key = bytes


def owner_of(tenant: str) -> bytes:
    """Return a short digest of a tenant's name, for values that replicas share."""
    return blake2b(tenant.encode(), digest_size=8).hexdigest().encode()


@dataclass(frozen=True, slots=True)
class Kept(Generic[V]):
    """A value, when it was computed (monotonic seconds) and for whom: a digest of the tenant's name."""

    value: V
    at: float
    owner: bytes


class Further(Protocol[V]):
    """Where values of other replicas are; it raises nothing but cancellation."""

    async def find(self, keys: Sequence[Key]) -> Mapping[Key, tuple[V, float, bytes]]:
        """Return the values that there are under these keys, each with its age in seconds and its owner."""

    def keep(self, values: Mapping[Key, V], owner: bytes) -> None:
        """Has values of an owner kept; it takes no time."""


class Cache(Generic[V]):
    """A cache touched by the event loop's thread only. `ttl` is in seconds; no entries: nothing is kept.

    `keeps` says which values hold for later, `shares` which hold for others who wait for the same just now. `further`
    has values of other replicas, and is given ours.
    """

    def __init__(
        self,
        max_entries: int,
        ttl: float,
        keeps: Callable[[V], bool],
        shares: Callable[[V], bool],
        clock: Callable[[], float] = time.monotonic,
        further: Further[V] | None = None,
    ) -> None:
        self._kept: TLRUCache[Key, Kept[V]] = TLRUCache(max_entries, lambda _, kept, __: kept.at + ttl, timer=clock)
        self._in_flight: dict[Key, asyncio.Future[Kept[V]]] = {}
        self._keeps = keeps
        self._shares = shares
        self._clock = clock
        self._further = further

    async def get(
        self, keys: Sequence[Key], compute: Callable[[Sequence[int]], Awaitable[Sequence[V]]], tenant: str = ""
    ) -> tuple[list[V], CacheUse]:
        """The value under each key, in order. `compute` is given the positions of those that nobody has yet.

        Tenants share values, but each learns the age of its own only: another's would show when that one asked.
        """
        owner = owner_of(tenant)
        found: dict[Key, Kept[V]] = {key: kept for key in keys if (kept := self._kept.get(key))}
        known = list(found.values())
        while missing := [key for key in dict.fromkeys(keys) if key not in found]:
            others = {key: self._in_flight[key] for key in missing if key in self._in_flight}
            if len(others) < len(missing):
                mine = [key for key in missing if key not in others]
                recalled, computed = await self._lead(mine, keys, compute, owner)
                known += recalled.values()
                found |= recalled | computed
            else:
                await asyncio.wait(others.values())
            found |= {key: kept for key, future in others.items() if (kept := self._given(future))}
        oldest = max((self._clock() - kept.at for kept in known if kept.owner == owner), default=None)
        return [found[key].value for key in keys], CacheUse(len(known), len(keys) - len(known), oldest)

    async def _lead(
        self,
        mine: Sequence[Key],
        keys: Sequence[Key],
        compute: Callable[[Sequence[int]], Awaitable[Sequence[V]]],
        owner: bytes,
    ) -> tuple[dict[Key, Kept[V]], dict[Key, Kept[V]]]:
        """What other replicas have, and what nobody has and is computed; who else wants the same meanwhile waits.

        If it fails, they do it themselves.
        """
        futures: dict[Key, asyncio.Future[Kept[V]]] = {key: asyncio.get_running_loop().create_future() for key in mine}
        self._in_flight |= futures
        try:
            recalled = await self._recalled(mine)
            missing = [key for key in mine if key not in recalled]
            positions = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))  # the first of each
            values = await compute([positions[key] for key in missing]) if missing else ()
            computed = {key: Kept(value, self._clock(), owner) for key, value in zip(missing, values, strict=True)}
            self._keep(recalled, computed, owner)
            for key, future in futures.items():
                future.set_result(recalled[key] if key in recalled else computed[key])
            return recalled, computed
        finally:
            for key, future in futures.items():
                del self._in_flight[key]
                future.cancel()

    async def _recalled(self, keys: Sequence[Key]) -> dict[Key, Kept[V]]:
        if self._further is None:
            return {}
        found = await self._further.find(keys)
        return {key: Kept(value, self._clock() - age, owner) for key, (value, age, owner) in found.items()}

    def _keep(self, recalled: Mapping[Key, Kept[V]], computed: Mapping[Key, Kept[V]], owner: bytes) -> None:
        lasting = {key: kept for key, kept in computed.items() if self._keeps(kept.value)}
        if self._kept.maxsize:
            for key, kept in (*recalled.items(), *lasting.items()):
                self._kept[key] = kept
        if self._further is not None and lasting:
            self._further.keep({key: kept.value for key, kept in lasting.items()}, owner)

    def _given(self, future: asyncio.Future[Kept[V]]) -> Kept[V] | None:
        """What another one found, if it holds for everybody: its lack of time does not."""
        if not future.done() or future.cancelled():
            return None
        return future.result() if self._shares(future.result().value) else None
