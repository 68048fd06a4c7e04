"""Verdicts that were given before, kept in process for a while (CA1, CA2). Equal work in flight runs once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from cachetools import TTLCache

from proxy.types import CacheUse, Judgement

Key = bytes
Compute = Callable[[Sequence[int]], Awaitable[Sequence[Judgement]]]


@dataclass(frozen=True, slots=True)
class Kept:
    """A judgement and when it was given (monotonic seconds)."""

    judgement: Judgement
    at: float


class VerdictCache:
    """A cache under exact keys, touched by the event loop's thread only. `ttl` is in seconds; no entries: no cache."""

    def __init__(self, max_entries: int, ttl: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: TTLCache[Key, Kept] = TTLCache(max_entries, ttl, timer=clock)
        self._in_flight: dict[Key, asyncio.Future[Kept]] = {}
        self._clock = clock

    async def get(self, keys: Sequence[Key], compute: Compute) -> tuple[list[Judgement], CacheUse]:
        """The judgement under each key, in order. `compute` is given the positions of those that nobody has yet.

        What was not checked is handed on but never kept, so that it is tried again next time.
        """
        found: dict[Key, Kept] = {key: kept for key in keys if (kept := self._kept.get(key))}
        hits = len(found)
        oldest = max((self._clock() - kept.at for kept in found.values()), default=None)
        while missing := [key for key in dict.fromkeys(keys) if key not in found]:
            others = {key: self._in_flight[key] for key in missing if key in self._in_flight}
            if len(others) < len(missing):
                found |= await self._lead([key for key in missing if key not in others], keys, compute)
            else:
                await asyncio.wait(others.values())
            found |= {key: kept for key, future in others.items() if (kept := _given(future))}
        return [found[key].judgement for key in keys], CacheUse(hits, len(keys) - hits, oldest)

    async def _lead(self, mine: Sequence[Key], keys: Sequence[Key], compute: Compute) -> dict[Key, Kept]:
        """Computes what nobody has while others who want the same wait; if it fails, they do it themselves."""
        futures = {key: asyncio.get_running_loop().create_future() for key in mine}
        self._in_flight |= futures
        try:
            judgements = await compute([keys.index(key) for key in mine])
            for (key, future), judgement in zip(futures.items(), judgements, strict=True):
                future.set_result(kept := Kept(judgement, self._clock()))
                if judgement.verdict.label != "not_checked" and self._kept.maxsize:
                    self._kept[key] = kept
            return {key: future.result() for key, future in futures.items()}
        finally:
            for key, future in futures.items():
                del self._in_flight[key]
                future.cancel()


def _given(future: asyncio.Future[Kept]) -> Kept | None:
    """What another exchange found, if it has come to a verdict: its lack of time is not everybody's."""
    if not future.done() or future.cancelled():
        return None
    return future.result() if future.result().judgement.verdict.label != "not_checked" else None
