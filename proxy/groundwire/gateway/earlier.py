"""Load the earlier answers about a subject, for comparison."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from groundwire.features.consistency.compare import Earlier
from groundwire.storage.history.exchange import Query

if TYPE_CHECKING:  # it brings SQLAlchemy, which only those need who have a store
    from groundwire.storage.history.exchanges import Exchanges

log = structlog.get_logger("groundwire.consistency")

_RECALL_S = 0.5  # no answer waits for it, but its report does


@dataclass(frozen=True, slots=True)
class EarlierAnswers:
    """Look up the newest `most` answers about a subject in the history."""

    exchanges: Exchanges
    most: int = 50

    async def of(self, subject: str, tenant: str = "") -> tuple[Earlier, ...] | None:
        """The earlier answers to a tenant, the newest first; none where their texts are not kept.

        None when the history fails or hangs. It raises only cancellation.
        """
        try:
            async with asyncio.timeout(_RECALL_S):
                page = await self.exchanges.page(Query(subject=subject, tenant=tenant), limit=self.most)
        except Exception as error:  # noqa: BLE001 - whatever a store may raise
            log.warning("consistency.no_history", error=type(error).__name__)
            return None
        return tuple(
            Earlier(each.id, each.at, each.answer, each.asked or each.question or "")
            for each in page.items
            if each.answer
        )
