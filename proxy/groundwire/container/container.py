"""All components behind the HTTP endpoints: start, health and shutdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from groundwire.backends.loading import start_judge
from groundwire.config import JudgeSettings, Settings
from groundwire.container.stores import build_history
from groundwire.dialects.jsonbytes import dumps
from groundwire.gateway.checks import Checks
from groundwire.gateway.completion import Completions
from groundwire.gateway.deferred import DeferredQueue
from groundwire.gateway.forward import PassThrough
from groundwire.gateway.models import Estimators
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.storage.jobs import Jobs
from groundwire.storage.limits import LocalLimits
from groundwire.storage.memory import MemoryFacts, Reports
from groundwire.storage.transact import JobStore, Work
from groundwire.telemetry import Telemetry, build_telemetry
from groundwire.telemetry import instruments as i

if TYPE_CHECKING:
    from groundwire.backends.facts import FactsDatabase
    from groundwire.storage.history.history import History
    from groundwire.storage.shared import SharedRedis


class ProcessResources:
    """Components of which two at once would be wrong. All containers of a process use the same ones:

    - `telemetry`: counters must not fall back to zero, and a second exporter would send everything twice;
    - `history`: two writers would block each other in an SQLite file;
    - jobs: the job engine runs once per process;
    - `reports` and `memory_facts`: clients fetch by id what an earlier container has stored in memory;
    - the entailment model: two of them would double the memory.

    The first container that starts also starts them, and the last one that closes also closes them.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str], telemetry: Telemetry | None = None) -> None:
        self.telemetry = telemetry or build_telemetry(settings.telemetry, environ, settings.named_models)
        self.history = build_history(settings.store)
        self.reports = Reports(settings.grounding.keep_reports)
        self.memory_facts = MemoryFacts()
        self._jobs: Jobs | None = None
        self.judge: Callable[[JudgeSettings], Judge] = lru_cache(maxsize=1)(start_judge)
        """Return the judge with these settings; its model is loaded again only when they change."""
        self._users: set[int] = set()

    def jobs(self, store: JobStore, work: Sequence[Work]) -> Jobs:
        """Return the job runner, created on the first call."""
        if self._jobs is None:
            self._jobs = Jobs(store, work)
        return self._jobs

    async def acquire(self, user: object) -> None:
        """Register a container, and start everything for the first one."""
        is_first = not self._users
        self._users.add(id(user))
        if not is_first:
            return
        self.telemetry.start()
        if self.history is not None:
            self.history.start()
        if self._jobs is not None:
            await self._jobs.start()

    async def release(self, user: object) -> bool:
        """Unregister a container. Once there is none, stop jobs, write pending records and return True.

        `telemetry` is left open, to be closed last.
        """
        self._users.discard(id(user))
        if self._users:
            return False
        if self._jobs is not None:
            await self._jobs.close()
        if self.history is not None:
            await self.history.close()
        return True


_SETTLE_S = 5.0  # at shutdown, for reports in progress


@dataclass(frozen=True, slots=True)
class Container:
    """The components behind the HTTP endpoints, built from one version of the settings.

    `resources` are shared with the containers of earlier and later versions.
    """

    settings: Settings
    resources: ProcessResources
    completions: Completions
    passage: PassThrough
    workers: Workers
    encoder: Judge
    estimators: Estimators
    checks: Checks
    later: DeferredQueue | None = None
    facts: FactsDatabase | None = None
    limiter: LocalLimits = field(default_factory=LocalLimits)
    shared: SharedRedis | None = None

    @property
    def reports(self) -> Reports:
        """The reports in memory."""
        return self.resources.reports

    @property
    def telemetry(self) -> Telemetry:
        """The logs, metrics and traces of the process."""
        return self.resources.telemetry

    @property
    def history(self) -> History | None:
        """The database of exchanges, if configured."""
        return self.resources.history

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

    def readings(self) -> Iterator[i.Reading]:
        """Yield the counts that the components keep, for the metrics."""
        yield i.QUEUE, (), self.workers.waiting
        yield i.ROOM, (), self.workers.capacity
        yield i.SHED, (), self.workers.shed
        if self.history is not None:
            yield i.STORE_WAITING, (), self.history.writer.waiting
            yield i.STORE_LOST, (), self.history.writer.lost
        if self.later is not None:
            yield i.JOBS_LOST, (), self.later.jobs.lost
            yield from ((i.JOBS_WAITING, (kind,), count) for kind, count in self.later.jobs.waiting.items())
        yield from ((i.DEGRADED, (part,), 1) for part, _ in self.degraded())

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
        """Start the background tasks, run jobs with the functions of this container, and report its gauges."""
        self.reports.resize(self.settings.grounding.keep_reports)
        if self.later is not None:
            self.later.jobs.begin(self.later.work)
        await self.resources.acquire(self)
        if self.telemetry.metrics is not None:
            self.telemetry.metrics.readers.append(self.readings)

    def stop_reporting(self) -> None:
        """Leave the gauges to the next container."""
        if self.telemetry.metrics is not None and self.readings in self.telemetry.metrics.readers:
            self.telemetry.metrics.readers.remove(self.readings)

    async def close(self) -> None:
        """Release the process's resources, close connections and stop workers."""
        await self.completions.grounding.settle(_SETTLE_S)
        is_last = await self.resources.release(self)
        for upstream in self.passage.router.upstreams:
            await upstream.aclose()
        if self.facts is not None:
            await self.facts.close()
        await self.limiter.aclose()
        if self.shared is not None:
            await self.shared.aclose()
        self.workers.close()
        if (judging := self.completions.grounding.language_judges) is not None:
            judging.waiting.close()
        await self.completions.grounding.schemas.aclose()
        if is_last:
            self.telemetry.close()
        else:
            self.stop_reporting()
