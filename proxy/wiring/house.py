"""The house as it stands: the parts that the HTTP edge leads to, how they begin, how they are, and how they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proxy.config import Settings
from proxy.dialects.jsonbytes import dumps
from proxy.gateway.checks import Checks
from proxy.gateway.completion import Completions
from proxy.gateway.deferred import Later
from proxy.gateway.estimators import Estimators
from proxy.gateway.passthrough import PassThrough
from proxy.gateway.workers import Workers
from proxy.stores.limits import Limiter, LocalLimits
from proxy.stores.reports import Reports
from proxy.telemetry import Telemetry
from proxy.telemetry.instruments import (
    DEGRADED,
    JOBS_LOST,
    JOBS_WAITING,
    QUEUE,
    ROOM,
    SHED,
    STORE_LOST,
    STORE_WAITING,
)
from proxy.telemetry.metrics import Reading

if TYPE_CHECKING:
    from proxy.evidence.facts import FactsDatabase
    from proxy.stores.history.history import History
    from proxy.stores.shared.redis import SharedRedis

_SETTLE_S = 5.0  # at the end, for reports that are still being made


@dataclass(frozen=True, slots=True)
class House:
    """The parts that the HTTP edge leads to.

    Some may be `inherited` from the house before it: those run already, and whoever has them last ends them.
    """

    settings: Settings
    completions: Completions
    passage: PassThrough
    reports: Reports
    telemetry: Telemetry
    workers: Workers
    estimators: Estimators
    checks: Checks
    later: Later | None = None
    facts: FactsDatabase | None = None
    history: History | None = None
    limiter: Limiter = field(default_factory=LocalLimits)
    shared: SharedRedis | None = None
    inherited: tuple[object, ...] = ()
    _handed_over: list[object] = field(default_factory=list)

    def hand_over_to(self, heir: House) -> None:
        """Leaves to the next house what it has inherited from this one: closing this one spares that."""
        self._handed_over.extend(heir.inherited)
        if self.telemetry.metrics is not None:
            self.telemetry.metrics.forget(self.readings)

    def renounce(self) -> None:
        """Gives up what was inherited: this house never came to be, and closing it must not touch the one before."""
        self._handed_over.extend(self.inherited)

    def degraded(self) -> tuple[tuple[str, str], ...]:
        """Which parts work less than fully just now, each with its reason."""
        overload = "overload" if self.workers.is_full else None
        jobs = "unavailable" if self.later and self.later.jobs.is_down else None
        store = self.history.degraded() if self.history else None
        redis = self.shared.degraded() if self.shared else None
        sending = self.telemetry.degraded()
        judge = self.completions.grounder.verification.judge.model.state
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
        """What the parts keep count of anyway, for the metrics."""
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
        """A tenant's report under an id, as far as it has come: of this process, of a job, or as it was stored.

        Raises JobsUnavailable or StoreUnavailable when that cannot be known just now.
        """
        found = self.reports.get(id_, tenant) if self.later is None else await self.later.find(id_, tenant)
        if found is not None or self.history is None:
            return found
        stored = await self.history.exchanges.get(id_, tenant)
        return None if stored is None else dumps(stored.report)

    async def start(self) -> None:
        """Begins with what is to be done besides answering: recording, and the jobs that were left for later."""
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
        """Ends jobs, writes what is to be stored, closes connections, ends workers, sends what is still to be told."""
        await self.completions.grounder.settle(_SETTLE_S)
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
        await self.completions.grounder.verification.schemas.aclose()
        if self._is_to_end(self.telemetry):
            self.telemetry.close()

    def _is_to_end(self, part: object) -> bool:
        """Whether it ends with this house: no other one has it."""
        return not _is_among(self._handed_over, part)


def _is_among(parts: Sequence[object], part: object) -> bool:
    return any(each is part for each in parts)
