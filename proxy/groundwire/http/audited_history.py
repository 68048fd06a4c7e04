"""Access of admins to stored data. Every read and every change is recorded in the audit log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from groundwire.dialects.reviews import ClaimDecisionIn
from groundwire.errors import UnknownReview
from groundwire.features.consistency.compare import Entity, entity_history
from groundwire.storage.history.audit import Action
from groundwire.storage.history.exchange import Page, Query, Similar, Stored, Summary
from groundwire.storage.history.history import History
from groundwire.storage.history.reviews import Decided, Decision, Finding, Wanted
from groundwire.storage.memory import MemoryFacts, Reports

if TYPE_CHECKING:
    from groundwire.telemetry.metrics import Metrics

_ANSWERS = 200  # of a subject, the newest, in which names are looked for


@dataclass(frozen=True, slots=True)
class AuditedHistory:
    """The history with an audit log; `who` is always the admin's name. Every method raises StoreUnavailable.

    `reports` are those in memory of this process, `memory` the stored facts about subjects; `metrics` count decisions.
    Admins have access to all tenants, or to the one that they name.
    """

    history: History
    reports: Reports
    metrics: Metrics | None = None
    memory: MemoryFacts | None = None

    async def queue(self, who: str, wanted: Wanted, after: int | None = None, limit: int = 50) -> Page[Finding]:
        """Return the findings that match, newest first."""
        await self._note(who, "list", _described(wanted), wanted.subject)
        return await self.history.reviews.page(wanted, after, limit)

    async def answers(
        self, who: str, wanted: Wanted, after: int | None = None, limit: int = 50
    ) -> Page[tuple[Finding, ...]]:
        """Return the findings that match by answer, newest answer first."""
        await self._note(who, "list", _described(wanted), wanted.subject)
        return await self.history.reviews.answers(wanted, after, limit)

    async def finding(self, who: str, id_: int) -> tuple[Finding, tuple[Decided, ...]] | None:
        """Return a finding with all decisions on it, oldest first, or None if there is no such finding."""
        found = await self.history.reviews.get(id_)
        if found is None:
            return None
        await self._note(who, "read", found.exchange, found.subject)
        return found, await self.history.reviews.decisions(id_)

    async def exchange(self, who: str, id_: str) -> tuple[Stored, tuple[Finding, ...]] | None:
        """Return an exchange with its findings in the order of the answer, or None if there is no such exchange."""
        found = await self.history.exchanges.get(id_)
        if found is None:
            return None
        await self._note(who, "read", id_, found.summary.subject)
        return found, await self.history.reviews.of_exchange(id_)

    async def exchanges(self, who: str, query: Query, after: int | None, limit: int) -> Page[Summary]:
        """Return the exchanges that match a query, newest first."""
        await self._note(who, "search" if query.text else "list", _described(query), query.subject)
        return await self.history.exchanges.page(query, after, limit)

    async def similar(
        self, who: str, question: str, subject: str | None, limit: int, tenant: str | None = None
    ) -> tuple[Similar, ...]:
        """Return exchanges with the most similar questions, the most similar first."""
        await self._note(who, "search", "similar questions", subject)
        return await self.history.exchanges.similar(question, subject, limit, tenant)

    async def entities(self, who: str, subject: str, tenant: str | None = None) -> tuple[Entity, ...]:
        """Return the statements about each name in the newest answers about a subject."""
        await self._note(who, "list", "entities", subject)
        answers = await self.history.exchanges.earlier(subject, tenant, _ANSWERS)
        return await asyncio.to_thread(entity_history, answers)

    async def decide(self, who: str, id_: int, version: int, decision: Decision, note: str) -> Finding | None:
        """Decide on a finding as it was at `version`; None if there is none. Raises ReviewConflict."""
        found = await self.history.reviews.decide(id_, version, decision, who, note)
        if found is not None:
            await self._decided(who, found, decision)
        return found

    async def decide_on_claim(self, who: str, given: ClaimDecisionIn) -> Finding:
        """Decide on any claim of an exchange. Raises ReviewConflict, and UnknownReview if there is no such claim."""
        stored = await self.history.exchanges.get(given.exchange)
        found = stored and await self.history.reviews.decide_on_claim(
            stored, given.choice, given.claim, given.version, given.decision, who, given.note
        )
        if not found:
            raise UnknownReview("No stored exchange has this claim.", param="claim")
        await self._decided(who, found, given.decision)
        return found

    async def _decided(self, who: str, found: Finding, decision: Decision) -> None:
        await self._note(who, "decide", f"{found.id} {decision}", found.subject)
        if self.metrics is not None and found.score is not None and found.flags:
            self.metrics.reviewed(found.verifier or "", found.score, is_right=decision == "confirmed")

    async def export(self, who: str, wanted: Wanted) -> AsyncIterator[Finding]:
        """Iterate over the findings that match, newest first; they are read lazily."""
        await self._note(who, "export", _described(wanted), wanted.subject)
        return self.history.reviews.export(wanted)

    async def forget(self, who: str, subject: str, tenant: str | None = None) -> int:
        """Delete all data about a subject, including remembered facts, and return the number of exchanges."""
        if self.memory is not None:
            await self.memory.forget(subject, tenant)
        ids = await self.history.forget(subject, tenant)
        for id_ in ids:
            self.reports.drop(id_)
        await self._note(who, "forget", f"{len(ids)} exchanges")
        return len(ids)

    async def subjects(self, who: str) -> None:
        """Record in the audit log that the figures of subjects were read."""
        await self._note(who, "list", "figures of subjects")

    async def _note(self, who: str, action: Action, what: str, subject: str | None = None) -> None:
        await self.history.audit.note(who, action, what, subject)


def _described(conditions: Wanted | Query) -> str:
    """Describe conditions for the audit log, without the searched text, which is content."""
    return " ".join(
        f"{name}={'…' if name == 'text' else value}"
        for name, value in asdict(conditions).items()
        if value not in (None, False) and name != "subject"
    )
