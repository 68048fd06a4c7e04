"""Load context that a request refers to but does not contain: remembered facts, database values, earlier answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from groundwire.dialects.options import Options
from groundwire.dialects.request import Request
from groundwire.domain import Source
from groundwire.features.consistency.compare import EarlierAnswer
from groundwire.storage.history.exchange import Query

if TYPE_CHECKING:  # these imports load SQLAlchemy, which is needed only with a database
    from groundwire.backends.facts import FactsDatabase
    from groundwire.gateway.memory import Memory
    from groundwire.storage.history.exchanges import Exchanges

log = structlog.get_logger("groundwire.consistency")

_HISTORY_TIMEOUT_S = 0.5  # the report waits for it, the answer does not


@dataclass(frozen=True, slots=True)
class EarlierAnswers:
    """Look up the newest `limit` answers about a subject in the history."""

    exchanges: Exchanges
    limit: int = 50

    async def load(self, subject: str, tenant: str = "") -> tuple[EarlierAnswer, ...] | None:
        """Return the earlier answers to a tenant, the newest first; none where their texts are not stored.

        None when the history fails or takes too long. Raises nothing but cancellation.
        """
        try:
            async with asyncio.timeout(_HISTORY_TIMEOUT_S):
                page = await self.exchanges.page(Query(subject=subject, tenant=tenant), limit=self.limit)
        except Exception as error:  # noqa: BLE001 - any error of a store
            log.warning("consistency.no_history", error=type(error).__name__)
            return None
        return tuple(
            EarlierAnswer(each.id, each.at, each.answer, each.asked or each.question or "")
            for each in page.items
            if each.answer
        )


@dataclass(frozen=True, slots=True)
class ExternalContext:
    """External context: evidence, earlier answers about the subject, and warnings about failures."""

    sources: tuple[Source, ...] = ()
    warnings: tuple[str, ...] = ()
    earlier: tuple[EarlierAnswer, ...] = ()


Load = Callable[[], Awaitable[ExternalContext]]
"""Load external context; raises nothing but cancellation."""


@dataclass(frozen=True, slots=True)
class ExternalContextLoader:
    """Load external context: facts of `memory` as evidence, values of the user's database from `facts`, and the earlier
    answers about a subject from `history`, which are read only if answers are compared (`comparing`).
    """

    memory: Memory | None = None
    facts: FactsDatabase | None = None
    history: EarlierAnswers | None = None
    comparing: bool = True

    def loader(self, request: Request) -> Load | None:
        """Return the loader of a request's external context; None if there is nothing to load."""
        options = request.options
        wants_memory = self.memory is not None and options.memory and options.subject is not None
        wants_facts = self.facts is not None and options.facts is not None
        wants_history = self.comparing and self.history is not None and options.subject is not None
        return partial(self._load, options, request.tenant) if wants_memory or wants_facts or wants_history else None

    async def _load(self, options: Options, tenant: str) -> ExternalContext:
        context = ExternalContext()
        if self.memory and options.memory and options.subject is not None:
            context = ExternalContext(await self.memory.sources(options.subject, tenant))
        if self.facts and options.facts is not None:
            found = await self.facts.ask(options.facts, tenant)
            unknown = (f"facts: no template takes {name!r}" for name in found.unknown)
            context = ExternalContext((*context.sources, *found.sources), (*map(str, found.shortfalls), *unknown))
        if self.history and self.comparing and options.subject is not None:
            earlier = await self.history.load(options.subject, tenant)
            unread = () if earlier is not None else ("consistency: earlier answers could not be read",)
            context = ExternalContext(context.sources, (*context.warnings, *unread), earlier or ())
        return context

    def unmet(self, options: Options) -> Iterator[str]:
        """Yield warnings about context that a request asks for and that is not configured."""
        if options.facts is not None and self.facts is None:
            yield "facts: no SQL templates are configured"
        if options.memory and self.memory is None:
            yield "memory: the memory gate is off"
        elif options.memory and options.subject is None:
            yield "memory: no subject is named"
        for name in ("subject", "session") if self.history is None else ():
            is_used = name == "subject" and options.memory
            if getattr(options, name) is not None and not is_used:
                yield f"{name}: nothing is stored, as store.url is not set"
