"""All components behind the HTTP endpoints: start, health and shutdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from groundwire.config import Settings
from groundwire.dialects.jsonbytes import dumps
from groundwire.gateway.checks import Checks
from groundwire.gateway.completion import Completions
from groundwire.gateway.deferred import DeferredQueue
from groundwire.gateway.models import Estimators
from groundwire.gateway.passthrough import PassThrough
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.storage.limits import Limiter, LocalLimits
from groundwire.storage.reports import Reports
from groundwire.telemetry import Telemetry
from groundwire.telemetry.instruments import (
    DEGRADED,
    JOBS_LOST,
    JOBS_WAITING,
    QUEUE,
    ROOM,
    SHED,
    STORE_LOST,
    STORE_WAITING,
)
from groundwire.telemetry.metrics import Reading

if TYPE_CHECKING:
    from groundwire.backends.facts import FactsDatabase
    from groundwire.storage.history.history import History
    from groundwire.storage.shared.redis import SharedRedis

_SETTLE_S = 5.0  # at shutdown, for reports in progress


@dataclass(frozen=True, slots=True)
class House:
    """The components behind the HTTP endpoints.

    `inherited` ones were taken over from the preceding instance: they are running already, and the last instance that
    holds them closes them.
    """

    settings: Settings
    completions: Completions
    passage: PassThrough
    reports: Reports
    telemetry: Telemetry
    workers: Workers
    encoder: Judge
    estimators: Estimators
    checks: Checks
    later: DeferredQueue | None = None
    facts: FactsDatabase | None = None
    history: History | None = None
    limiter: Limiter = field(default_factory=LocalLimits)
    shared: SharedRedis | None = None
    inherited: tuple[object, ...] = ()
    _handed_over: list[object] = field(default_factory=list)

    def hand_over_to(self, heir: House) -> None:
        """Leave the parts that `heir` has taken over open when this instance closes."""
        self._handed_over.extend(heir.inherited)
        if self.telemetry.metrics is not None:
            self.telemetry.metrics.forget(self.readings)

    def renounce(self) -> None:
        """Give up inherited parts, so that closing an instance that never served does not close them."""
        self._handed_over.extend(self.inherited)

    def degraded(self) -> tuple[tuple[str, str], ...]:
        """Return the parts that are degraded now, each with its reason."""
        overload = "overload" if self.workers.is_full else None
        jobs = "unavailable" if self.later and self.later.jobs.is_down else None
        store = self.history.degraded() if self.history else None
        redis = self.shared.degraded() if self.shared else None
        sending = self.telemetry.degraded()
        judge = self.encoder.model.state
        parts = (
            ("verification", overload),
            ("jobs", jobs),
            ("store", store),
            ("redis", redis),
            ("telemetry", sending),
            ("judge", judge if judge in ("loading", "failed") else None),
        )
        return tuple((part, why) for part, why in parts if why)

    def readings(self) -> Iterator[Reading]:
        """Yield the counts that the components keep, for the metrics."""
        yield QUEUE, (), self.workers.waiting
        yield ROOM, (), self.workers.capacity
        yield SHED, (), self.workers.shed
        if self.history is not None:
            yield STORE_WAITING, (), self.history.writer.waiting
            yield STORE_LOST, (), self.history.writer.lost
        if self.later is not None:
            yield JOBS_LOST, (), self.later.jobs.lost
            yield from ((JOBS_WAITING, (kind,), count) for kind, count in self.later.jobs.waiting.items())
        yield from ((DEGRADED, (part,), 1) for part, _ in self.degraded())

    async def find_report(self, id_: str, tenant: str = "") -> bytes | None:
        """Return a tenant's report in its current state: from this process, a job, or the store.

        Raises JobsUnavailable or StoreUnavailable when the lookup is not possible now.
        """
        found = self.reports.get(id_, tenant) if self.later is None else await self.later.find(id_, tenant)
        if found is not None or self.history is None:
            return found
        stored = await self.history.exchanges.get(id_, tenant)
        return None if stored is None else dumps(stored.report)

    async def start(self) -> None:
        """Start the background tasks: telemetry, recording and jobs."""
        if not _is_among(self.inherited, self.telemetry):
            self.telemetry.start()
        if self.telemetry.metrics is not None:
            self.telemetry.metrics.read(self.readings)
        if self.history is not None and not _is_among(self.inherited, self.history):
            self.history.start()
        if self.later is not None:
            self.later.jobs.begin(self.later.work)
            if not _is_among(self.inherited, self.later.jobs):
                await self.later.jobs.start()

    async def close(self) -> None:
        """Stop jobs, write pending records, close connections, stop workers and send pending telemetry."""
        await self.completions.grounding.settle(_SETTLE_S)
        if self.later is not None and self._is_to_end(self.later.jobs):
            await self.later.jobs.close()
        if self.history is not None and self._is_to_end(self.history):
            await self.history.close()
        for upstream in self.passage.router.upstreams:
            await upstream.aclose()
        if self.facts is not None:
            await self.facts.close()
        if self._is_to_end(self.limiter):
            await self.limiter.aclose()
        if self.shared is not None and self._is_to_end(self.shared):
            await self.shared.aclose()
        self.workers.close()
        if (judging := self.completions.grounding.language_judges) is not None:
            judging.waiting.close()
        await self.completions.grounding.schemas.aclose()
        if self._is_to_end(self.telemetry):
            self.telemetry.close()

    def _is_to_end(self, part: object) -> bool:
        """Return whether this instance closes the part: no other one holds it."""
        return not _is_among(self._handed_over, part)


def _is_among(parts: Sequence[object], part: object) -> bool:
    return any(each is part for each in parts)
