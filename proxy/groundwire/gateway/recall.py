"""Load context that a request refers to but does not contain: remembered facts, database values, earlier answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from groundwire.dialects.options import Options
from groundwire.dialects.request import Request
from groundwire.domain import Source
from groundwire.features.consistency.compare import Earlier
from groundwire.gateway.earlier import EarlierAnswers

if TYPE_CHECKING:  # the import loads SQLAlchemy, which is needed only with a database
    from groundwire.backends.facts import FactsDatabase
    from groundwire.gateway.memory import Memory


@dataclass(frozen=True, slots=True)
class Recalled:
    """External context: evidence, earlier answers about the subject, and warnings about failures."""

    sources: tuple[Source, ...] = ()
    warnings: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()


Recall = Callable[[], Awaitable[Recalled]]
"""Load external context; raises nothing but cancellation."""


@dataclass(frozen=True, slots=True)
class Recaller:
    """Load external context: facts of `memory` as evidence, values of the user's database from `facts`, and the earlier
    answers about a subject from `history`, which are read only if answers are compared (`comparing`).
    """

    memory: Memory | None = None
    facts: FactsDatabase | None = None
    history: EarlierAnswers | None = None
    comparing: bool = True

    def of(self, request: Request) -> Recall | None:
        """Return the loader of a request's external context; None if there is nothing to load."""
        options = request.options
        wants_memory = self.memory is not None and options.memory and options.subject is not None
        wants_facts = self.facts is not None and options.facts is not None
        wants_history = self.comparing and self.history is not None and options.subject is not None
        return partial(self._recall, options, request.tenant) if wants_memory or wants_facts or wants_history else None

    async def _recall(self, options: Options, tenant: str) -> Recalled:
        recalled = Recalled()
        if self.memory and options.memory and options.subject is not None:
            recalled = Recalled(await self.memory.sources(options.subject, tenant))
        if self.facts and options.facts is not None:
            found = await self.facts.ask(options.facts, tenant)
            unknown = (f"facts: no template takes {name!r}" for name in found.unknown)
            recalled = Recalled((*recalled.sources, *found.sources), (*map(str, found.shortfalls), *unknown))
        if self.history and self.comparing and options.subject is not None:
            earlier = await self.history.of(options.subject, tenant)
            unread = () if earlier is not None else ("consistency: earlier answers could not be read",)
            recalled = Recalled(recalled.sources, (*recalled.warnings, *unread), earlier or ())
        return recalled

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
