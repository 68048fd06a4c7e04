"""Reports and remembered facts in the memory of this process, bounded by size."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cachetools import LRUCache

_OwnedReport = tuple[str, bytes]
"""A report and the tenant that it belongs to."""


class Reports:
    """Rendered reports (JSON bytes) under their ids, at most `max_bytes` in total."""

    def __init__(self, max_bytes: int) -> None:
        self._entries: LRUCache[str, _OwnedReport] = LRUCache(max_bytes, getsizeof=_report_size)

    def resize(self, max_bytes: int) -> None:
        """Change the capacity; surplus reports are dropped."""
        if max_bytes != self._entries.maxsize:
            entries, self._entries = self._entries, LRUCache(max_bytes, getsizeof=_report_size)
            for id_ in [*entries]:
                tenant, report = entries[id_]
                self.put(id_, report, tenant)

    def put(self, id_: str, report: bytes, tenant: str = "") -> None:
        """Store a report, replacing one with the same id; one larger than the capacity is not stored."""
        self._entries.pop(id_, None)
        if len(report) <= self._entries.maxsize:
            self._entries[id_] = tenant, report

    def drop(self, id_: str) -> None:
        """Drop a report, if present."""
        self._entries.pop(id_, None)

    def get(self, id_: str, tenant: str = "") -> bytes | None:
        """Return the report under an id, or None if there is none, or it belongs to another tenant."""
        owner, report = self._entries.get(id_, (tenant, None))
        return report if owner == tenant else None


def _report_size(entry: _OwnedReport) -> int:
    return len(entry[1])


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


class MemoryFacts:
    """Facts per subject: the newest `per_subject` of each, and `max_chars` of text in total.

    The least used subjects are dropped first.
    """

    def __init__(self, per_subject: int = 1000, max_chars: int = 8 * 2**20) -> None:
        self._per_subject = per_subject
        self._entries: LRUCache[tuple[str, str], tuple[Fact, ...]] = LRUCache(max_chars, getsizeof=_size)

    async def put(self, subject: str, facts: Sequence[Fact], tenant: str = "") -> None:
        """Store facts of a tenant; one with the text of an earlier one replaces it."""
        texts = {fact.text for fact in facts}
        earlier = [fact for fact in self._entries.pop((tenant, subject), ()) if fact.text not in texts]
        latest = {fact.text: fact for fact in facts}
        together = (*earlier, *latest.values())[-self._per_subject :]
        while _size(together) > self._entries.maxsize:
            together = together[1:]
        self._entries[tenant, subject] = together

    async def of(self, subject: str, tenant: str = "") -> Sequence[Fact]:
        """Return a tenant's facts about a subject, oldest first."""
        return self._entries.get((tenant, subject), ())

    async def drop(self, subject: str, ids: Collection[str], tenant: str = "") -> None:
        """Drop facts of a tenant by their ids."""
        if left := tuple(fact for fact in self._entries.pop((tenant, subject), ()) if fact.id not in ids):
            self._entries[tenant, subject] = left

    async def forget(self, subject: str, tenant: str | None = None) -> None:
        """Drop all facts of a tenant, or of all tenants, about a subject."""
        for owner, name in [*self._entries]:
            if name == subject and tenant in (None, owner):
                self._entries.pop((owner, name), None)


_OVERHEAD = 200  # characters that a fact and its subject take in addition to their text


def _size(facts: Sequence[Fact]) -> int:
    return _OVERHEAD + sum(_OVERHEAD + len(fact.text) for fact in facts)
