"""Verdicts that were given before, kept in process for a while (CA1, CA2). Equal work in flight runs once."""

from __future__ import annotations

import time
from collections.abc import Callable

from proxy.stores.cache import Cache, Further
from proxy.types import Judgement


class VerdictCache(Cache[Judgement]):
    """Judgements under exact keys. What is not final is handed on but never kept, so that it is tried again."""

    def __init__(
        self,
        max_entries: int,
        ttl: float,
        clock: Callable[[], float] = time.monotonic,
        further: Further[Judgement] | None = None,
    ) -> None:
        super().__init__(max_entries, ttl, _is_final, _is_checked, clock, further)


def _is_final(judgement: Judgement) -> bool:
    return judgement.is_final


def _is_checked(judgement: Judgement) -> bool:
    return judgement.verdict.label != "not_checked"
