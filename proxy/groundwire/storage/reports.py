"""Reports stored in process, to be fetched by id. Bounded by bytes: the oldest are dropped first."""

from __future__ import annotations

from groundwire.bounded import LRUCache

_Kept = tuple[str, bytes]
"""A report and the tenant that it belongs to."""


class Reports:
    """Rendered reports (JSON bytes) under their ids, at most `max_bytes` in total."""

    def __init__(self, max_bytes: int) -> None:
        self._kept: LRUCache[str, _Kept] = LRUCache(max_bytes, getsizeof=_size)

    def resize(self, max_bytes: int) -> None:
        """Change the capacity; surplus reports are dropped."""
        if max_bytes != self._kept.maxsize:
            kept, self._kept = self._kept, LRUCache(max_bytes, getsizeof=_size)
            for id_ in [*kept]:
                tenant, report = kept[id_]
                self.put(id_, report, tenant)

    def put(self, id_: str, report: bytes, tenant: str = "") -> None:
        """Store a report, replacing one with the same id; one larger than the capacity is not stored."""
        self._kept.pop(id_, None)
        if len(report) <= self._kept.maxsize:
            self._kept[id_] = tenant, report

    def drop(self, id_: str) -> None:
        """Drop a report, if present."""
        self._kept.pop(id_, None)

    def get(self, id_: str, tenant: str = "") -> bytes | None:
        """Return the report under an id, or None if there is none, or it belongs to another tenant."""
        owner, report = self._kept.get(id_, (tenant, None))
        return report if owner == tenant else None


def _size(kept: _Kept) -> int:
    return len(kept[1])
