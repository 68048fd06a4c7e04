"""All components behind the HTTP endpoints: build them from the settings, start them, and shut them down."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeVar, cast

import httpx

from groundwire.backends.loading import judge_identity, start_judge
from groundwire.config import JudgeSettings, Settings
from groundwire.config.settings import Cache as CacheSettings
from groundwire.config.settings import Facts, Store
from groundwire.config.settings import Jobs as JobSettings
from groundwire.container.models import (
    BuildContext,
    build_auditor,
    build_estimators,
    build_language_judges,
    build_memory,
    build_router,
    upstream_extras,
)
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Estimate, Judgement, Probability
from groundwire.errors import ConfigError
from groundwire.extras import require_extras
from groundwire.gateway.checks import Checks
from groundwire.gateway.claims import ClaimChecker
from groundwire.gateway.completion import Completions
from groundwire.gateway.forward import PassThrough
from groundwire.gateway.models import estimate_cache
from groundwire.gateway.repeat import Corrector, Sampler
from groundwire.gateway.reports import CHECK, EXAMINATION, WEBHOOK, DeferredQueue, traced
from groundwire.gateway.service import ExternalContextLoader, GroundingService
from groundwire.gateway.session import verify_deferred
from groundwire.judge import Judge
from groundwire.limits import Capacity, ConcurrencyLimiter
from groundwire.offload import Workers
from groundwire.storage.cache import VerdictCache
from groundwire.storage.jobs import Jobs
from groundwire.storage.limits import LocalLimits
from groundwire.storage.memory import MemoryFacts, Reports
from groundwire.storage.transact import Work
from groundwire.telemetry import Telemetry, build_telemetry
from groundwire.telemetry import instruments as i
from groundwire.upstream.http import AiohttpClient, HttpxClient
from groundwire.upstream.webhook import Webhook

if TYPE_CHECKING:  # the client library of a store is imported only if the store is configured
    from groundwire.backends.facts import FactsDatabase
    from groundwire.storage.history.history import History
    from groundwire.storage.shared import SharedRedis, SharedValues

V = TypeVar("V")

_SETTLE_S = 5.0  # at shutdown, for reports in progress


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
        self.history = _open_history(settings.store)
        self.reports = Reports(settings.grounding.keep_reports)
        self.memory_facts = MemoryFacts()
        self._jobs: Jobs | None = None
        self.judge: Callable[[JudgeSettings], Judge] = lru_cache(maxsize=1)(start_judge)
        """Return the judge with these settings; its model is loaded again only when they change."""
        self._users: set[int] = set()

    def jobs(self, settings: JobSettings, work: Sequence[Work]) -> Jobs:
        """Return the job runner, created on the first call."""
        if self._jobs is None:
            self._jobs = Jobs(settings, work)
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
        judge = self.encoder.model.state
        parts = {
            "verification": "overload" if self.workers.is_full else None,
            "jobs": "unavailable" if self.later and self.later.jobs.is_down else None,
            "store": self.history.degraded() if self.history else None,
            "redis": self.shared.degraded() if self.shared else None,
            "telemetry": self.telemetry.degraded(),
            "judge": judge if judge in ("loading", "failed") else None,
        }
        return tuple((part, why) for part, why in parts.items() if why)

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


def build_container(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    telemetry: Telemetry | None = None,
    judge: Judge | None = None,
    resources: ProcessResources | None = None,
) -> Container:
    """Build the components that `settings` describe; secrets come from `environ`.

    `resources` are those of the running process, if there is one. Raises ConfigError when an extra or a secret is
    missing, or the entailment model in the settings is not available.

    The other arguments replace parts that the settings would build, for tests and for embedding the proxy.
    """
    require_extras(*upstream_extras(settings), *_other_extras(settings))
    resources = resources or ProcessResources(settings, environ, telemetry)
    telemetry, history = resources.telemetry, resources.history
    context = BuildContext(settings, environ, HttpxClient(transport) if transport else AiohttpClient(), telemetry)
    router = build_router(context)
    grounding = settings.grounding
    workers = Workers(grounding.workers, grounding.queue)
    shared, limiter = _connect_redis(settings.cache)
    cache, estimates_ttl = settings.cache, settings.information_budget.cache_ttl
    identity = "" if judge and not settings.judge.is_language else judge_identity(settings.judge)
    policy = replace(settings.policy, judge=identity)
    judging = build_language_judges(context, router)
    judge = judge or resources.judge(settings.judge.encoder)
    verdicts = VerdictCache(
        cache.max_entries,
        cache.ttl,
        further=_shared_values(shared, "verdict", Judgement, cache.ttl),
        max_size=cache.max_size,
    )
    estimates = estimate_cache(
        cache.max_entries,
        estimates_ttl,
        cast("SharedValues[Estimate] | None", _shared_values(shared, "estimate", Probability, estimates_ttl)),
        cache.max_size,
    )
    estimators = build_estimators(context, router, workers, judge, estimates)
    checker = ClaimChecker(workers, policy, estimators, judge, judging)
    memory = build_memory(context, checker, resources.memory_facts)
    facts = _open_facts(settings.facts) if settings.numeric.facts else None
    service = GroundingService(
        workers,
        verdicts,
        resources.reports,
        policy,
        telemetry,
        grounding.timeout,
        judge=judging.judge(judge) if judging else judge,
        estimators=estimators if "output_verification" in estimators.operations else None,
        language_judges=judging,
        log_rejections=settings.quotes.log_rejections,
        external_context=ExternalContextLoader(
            memory,
            facts,
            history.exchanges if history else None,
            comparing=settings.consistency.enabled,
        ),
        history=history,
        budget=ConcurrencyLimiter(Capacity(size=grounding.max_bytes)),
    )
    completions = Completions(
        router,
        service,
        Sampler(telemetry, workers, policy, judge, settings.sampling),
        Corrector(telemetry, service.schemas, workers, settings.correction),
        grounding.mode if grounding.enabled else "off",
        grounding.timeout,
        settings.server.max_body,
        settings.stream,
    )
    checks = Checks(
        completions,
        checker,
        build_auditor(context, checker, router),
        max(grounding.timeout, settings.information_budget.timeout, judging.timeout if judging else 0.0),
        memory,
        "trace_auditing" in estimators.operations,
    )
    later = _build_deferred(context, service, checks, resources)
    completions = replace(completions, grounding=replace(service, queue=later))
    return Container(
        settings=settings,
        resources=resources,
        completions=completions,
        passage=PassThrough(router, telemetry),
        workers=workers,
        encoder=judge,
        checks=replace(checks, completions=completions),
        later=later,
        facts=facts,
        limiter=limiter,
        shared=shared,
    )


def _other_extras(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each setting outside the upstreams that needs an extra, with the extra."""
    if settings.cache.redis_url is not None:
        yield "cache.redis_url", "redis"
    for setting, url, extra in (
        ("store.url", settings.store.url, "history"),
        ("jobs.url", settings.jobs.url, "jobs"),
        ("facts.url", settings.facts.url, "history"),
    ):
        if url is not None:
            yield setting, extra
            if url.startswith("postgresql"):
                yield setting, "postgres"
    if settings.telemetry.otlp_endpoint is not None:
        yield "telemetry.otlp_endpoint", "telemetry"
    if settings.quotes.mode == "fuzzy":
        yield "quotes.mode", "fuzzy"
    if settings.correction.enabled:
        yield "correction.enabled", "schema"
    if settings.mcp.enabled:
        yield "mcp.enabled", "mcp"


def _connect_redis(cache: CacheSettings) -> tuple[SharedRedis | None, LocalLimits]:
    """Connect to the Redis that replicas share, if configured, and return the limiter of clients, which is kept there
    or in this process. Raises ConfigError for an invalid URL.
    """
    if cache.redis_url is None:
        return None, LocalLimits()
    from groundwire.storage.shared import SharedLimits, SharedRedis

    try:
        shared = SharedRedis(cache.redis_url, cache.redis_timeout)
    except ValueError as error:
        raise ConfigError(["cache.redis_url: it is not a URL of a Redis"]) from error
    return shared, SharedLimits(shared)


def _shared_values(shared: SharedRedis | None, kind: str, shape: type[V], ttl: float) -> SharedValues[V] | None:
    if shared is None:
        return None
    from groundwire.storage.shared import SharedValues

    return SharedValues(shared, kind, shape, ttl)


def _open_history(store: Store) -> History | None:
    """Open the database of exchanges, if configured."""
    if store.url is None:
        return None
    from groundwire.storage.history.database import Database
    from groundwire.storage.history.history import History

    return History(Database(store.url, store.database_schema), store)


def _open_facts(facts: Facts) -> FactsDatabase | None:
    """Open the database of facts, if configured."""
    if facts.url is None:
        return None
    from groundwire.backends.facts import FactsDatabase

    return FactsDatabase(facts.url, facts.templates, facts.timeout, facts.max_rows)


def _build_deferred(
    context: BuildContext, service: GroundingService, checks: Checks, resources: ProcessResources
) -> DeferredQueue | None:
    """Build the job runner and its kinds of work, which use longer time-outs; None without a job store.

    Raises ConfigError when a secret is missing or invalid.
    """
    webhook, jobs = _webhook(context), context.settings.jobs
    if jobs.url is None:
        return None
    runs = {
        EXAMINATION: partial(verify_deferred, replace(service, timeout=jobs.timeout / 2)),
        CHECK: partial(checks.finish, seconds=jobs.timeout / 2),
    }
    work = [
        Work(
            kind,
            traced(context.telemetry, kind, run),
            attempts=jobs.attempts,
            timeout=jobs.timeout,
            at_once=jobs.at_once,
            then=WEBHOOK if webhook else None,
        )
        for kind, run in runs.items()
    ]
    if webhook:
        attempts, timeout = context.settings.webhook.attempts, 2 * context.settings.webhook.timeout
        post = traced(context.telemetry, WEBHOOK, webhook.post)
        work.append(Work(WEBHOOK, post, attempts, timeout, at_once=4, initial_backoff=5.0, max_backoff=3600.0))
    return DeferredQueue(resources.jobs(jobs, work), service.reports, work)


def _webhook(context: BuildContext) -> Webhook | None:
    webhook = context.settings.webhook
    if webhook.url is None:
        return None
    secret = context.secret(webhook.secret_env, "webhook.secret_env")
    try:
        return Webhook(webhook.url, secret, context.transport, timeout=webhook.timeout, telemetry=context.telemetry)
    except ValueError as error:
        raise ConfigError([f"webhook.secret_env: {webhook.secret_env} holds no base64 behind whsec_"]) from error
