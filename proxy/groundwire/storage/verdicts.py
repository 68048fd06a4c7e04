"""An in-process cache of verdicts with a time to live. Concurrent requests for a key share one computation."""

from __future__ import annotations

import time
from collections.abc import Callable
from sys import getsizeof

from groundwire.domain import Judgement
from groundwire.storage.cache import Cache, Further

_JUDGEMENT, _VERDICT, _CITATION, _NUMBER = 1500, 500, 250, 250  # bytes of each without its texts


class VerdictCache(Cache[Judgement]):
    """Judgements under exact keys. Non-final ones are returned but never stored, so that they are retried."""

    def __init__(
        self,
        max_entries: int,
        ttl: float,
        clock: Callable[[], float] = time.monotonic,
        further: Further[Judgement] | None = None,
        max_size: int = 64 * 2**20,
    ) -> None:
        super().__init__(max_entries, ttl, _is_final, _is_checked, clock, further, max_size, size_of)


def size_of(judgement: Judgement) -> int:
    """Return about how many bytes a judgement takes."""
    claim = judgement.claim
    size = _JUDGEMENT + getsizeof(claim.text) + getsizeof(claim.lead) + sum(map(getsizeof, claim.cited))
    for verdict in judgement.verdicts:
        size += _VERDICT + getsizeof(verdict.reason) + _NUMBER * len(verdict.numbers)
        size += sum(_CITATION + getsizeof(each.text) + getsizeof(each.source) for each in verdict.citations)
    return size


def _is_final(judgement: Judgement) -> bool:
    return judgement.is_final


def _is_checked(judgement: Judgement) -> bool:
    return judgement.verdict.label != "not_checked"
