"""Facts that passed the memory gate, stored per subject in process. Bounded: the least used subjects are dropped
first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from groundwire.bounded import LRUCache


@dataclass(frozen=True, slots=True)
class Fact:
    """An accepted fact: its text, its confidence (0–1), its time (Unix seconds).

    `is_verified` is False for one that could not be checked; such a fact is listed but never serves as a source.
    """

    id: str
    text: str
    confidence: float
    at: float
    is_verified: bool


class FactStore(Protocol):
    """The store of accepted facts. Any method may raise any exception; callers continue without the facts."""

    async def put(self, subject: str, facts: Sequence[Fact], tenant: str = "") -> None:
        """Store facts of a tenant; one with the text of an earlier one replaces it."""

    async def of(self, subject: str, tenant: str = "") -> Sequence[Fact]:
        """Return a tenant's facts about a subject, oldest first."""

    async def drop(self, subject: str, ids: Collection[str], tenant: str = "") -> None:
        """Drop facts of a tenant by their ids."""

    async def forget(self, subject: str, tenant: str | None = None) -> None:
        """Drop all facts of a tenant, or of all tenants, about a subject."""


class MemoryFacts:
    """A `FactStore` in process, with the newest `per_subject` facts each and `max_chars` of text in total."""

    def __init__(self, per_subject: int = 1000, max_chars: int = 8 * 2**20) -> None:
        self._per_subject = per_subject
        self._kept: LRUCache[tuple[str, str], tuple[Fact, ...]] = LRUCache(max_chars, getsizeof=_size)

    async def put(self, subject: str, facts: Sequence[Fact], tenant: str = "") -> None:
        """Store facts of a tenant; one with the text of an earlier one replaces it."""
        texts = {fact.text for fact in facts}
        earlier = [fact for fact in self._kept.pop((tenant, subject), ()) if fact.text not in texts]
        latest = {fact.text: fact for fact in facts}
        together = (*earlier, *latest.values())[-self._per_subject :]
        while _size(together) > self._kept.maxsize:
            together = together[1:]
        self._kept[tenant, subject] = together

    async def of(self, subject: str, tenant: str = "") -> Sequence[Fact]:
        """Return a tenant's facts about a subject, oldest first."""
        return self._kept.get((tenant, subject), ())

    async def drop(self, subject: str, ids: Collection[str], tenant: str = "") -> None:
        """Drop facts of a tenant by their ids."""
        if left := tuple(fact for fact in self._kept.pop((tenant, subject), ()) if fact.id not in ids):
            self._kept[tenant, subject] = left

    async def forget(self, subject: str, tenant: str | None = None) -> None:
        """Drop all facts of a tenant, or of all tenants, about a subject."""
        for owner, name in [*self._kept]:
            if name == subject and tenant in (None, owner):
                self._kept.pop((owner, name), None)


_OVERHEAD = 200  # characters that a fact and its subject take in addition to their text


def _size(facts: Sequence[Fact]) -> int:
    return _OVERHEAD + sum(_OVERHEAD + len(fact.text) for fact in facts)
