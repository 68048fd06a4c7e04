"""What is recorded of an exchange once its report is made; nothing ever waits for it (HI1)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from proxy.dialects.request import Request
from proxy.gateway.annotate import Annotation
from proxy.gateway.deferred import Heard
from proxy.gateway.workers import Workers
from proxy.stores.history.exchange import Entry
from proxy.verification.context.gathering import question

log = structlog.get_logger("groundwire.history")


class Store(Protocol):
    """Where exchanges are recorded."""

    def record(self, entry: Entry) -> None:
        """Has an exchange recorded; it takes no time and never fails."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """Has exchanges recorded by `store`; what is to be read of them for that is read by a worker."""

    store: Store
    workers: Workers
    now: Callable[[], float] = time.time

    async def record(self, annotation: Annotation, request: Request, heard: Heard) -> None:
        """Has an exchange recorded as having taken place now. It raises nothing but cancellation (RE1)."""
        try:
            entry = await self.workers.insist(entry_of, annotation, request, heard, self.now())
        except Exception:
            log.exception("history.unreadable", grounding_id=annotation.report.id)
        else:
            self.store.record(entry)


def entry_of(annotation: Annotation, request: Request, heard: Heard, at: float) -> Entry:
    """What is recorded of an exchange that took place at a time in Unix seconds."""
    options = request.options
    return Entry(
        at=at,
        report=annotation.report,
        kept=annotation.kept,
        model=heard.model or request.model,
        question=question(request.exchange()),
        choices=tuple(heard.choices),
        subject=options.subject,
        session=options.session,
    )
