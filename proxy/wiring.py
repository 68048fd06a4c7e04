"""Builds the parts of the house from the settings; the only file that names every concrete class."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import httpx

from proxy.config import Backend as BackendSettings
from proxy.config import Settings
from proxy.config import Upstream as UpstreamSettings
from proxy.dialects.jsonbytes import dumps
from proxy.errors import ConfigError
from proxy.evidence.asking import Asking
from proxy.evidence.chat import ChatEstimator
from proxy.evidence.embedded import EmbeddedEstimator
from proxy.evidence.estimator import Limits, Meter
from proxy.evidence.executor import ChatExecutor
from proxy.evidence.loading import load_verifiers
from proxy.evidence.service import ServiceEstimator
from proxy.gateway.cascade import ModelStage
from proxy.gateway.checks import Checks
from proxy.gateway.completion import Completions, CompletionSettings
from proxy.gateway.deferred import EXAMINATION, WEBHOOK, Later, told_of
from proxy.gateway.earlier import EarlierAnswers
from proxy.gateway.estimators import Asker, Backend, Estimators, OpenBackend, estimate_cache
from proxy.gateway.grounding import Grounder
from proxy.gateway.memory import Memory
from proxy.gateway.passthrough import PassThrough
from proxy.gateway.proving import Prover
from proxy.gateway.record import Recorder
from proxy.gateway.room import Room
from proxy.gateway.sampling import Sampler, SamplingSettings
from proxy.gateway.stream import StreamSettings
from proxy.gateway.trace import Auditor, Executor
from proxy.gateway.verify import Verification
from proxy.gateway.workers import Workers
from proxy.stores.cache import Cache
from proxy.stores.facts import MemoryFacts
from proxy.stores.jobs.jobs import Jobs
from proxy.stores.jobs.work import JobStore, Work
from proxy.stores.limits import Limiter, LocalLimits
from proxy.stores.reports import Reports
from proxy.stores.verdicts import VerdictCache
from proxy.telemetry import Telemetry, build_telemetry
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
from proxy.types import Estimate, Headers, Judgement, Probability
from proxy.upstream.headers import ANTHROPIC_VERSION, AllowList, HeaderRules, bearer, x_api_key
from proxy.upstream.limits import LimitedUpstream, UpstreamLimits
from proxy.upstream.litellm import LitellmUpstream
from proxy.upstream.openai import OpenAIUpstream
from proxy.upstream.retries import Retries
from proxy.upstream.router import Route, Router, Served
from proxy.upstream.transport import AiohttpTransport
from proxy.upstream.upstream import Upstream
from proxy.upstream.webhook import Webhook
from proxy.verification.judge import Verifier
from proxy.verification.memory import GatePolicy

if TYPE_CHECKING:
    from proxy.evidence.facts import FactsDatabase
    from proxy.stores.history.history import History
    from proxy.stores.shared.redis import SharedRedis

T = TypeVar("T")

_DECIDE_ESTIMATES = ("cache", "hallucination", "upstreams", "encoder")  # what a model's estimates depend on
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
        parts = (
            ("verification", overload),
            ("jobs", jobs),
            ("store", store),
            ("redis", redis),
            ("telemetry", sending),
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

    async def find_report(self, id_: str) -> bytes | None:
        """The report under an id, as far as it has come: of this process, of a job, or as it was stored.

        Raises JobsUnavailable or StoreUnavailable when that cannot be known just now.
        """
        found = self.reports.get(id_) if self.later is None else await self.later.find(id_)
        if found is not None or self.history is None:
            return found
        stored = await self.history.exchanges.get(id_)
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
        if self._is_to_end(self.telemetry):
            self.telemetry.close()

    def _is_to_end(self, part: object) -> bool:
        """Whether it ends with this house: no other one has it."""
        return not _is_among(self._handed_over, part)


def _is_among(parts: Sequence[object], part: object) -> bool:
    return any(each is part for each in parts)


class _Estate:
    """What a house takes over from the one before it: parts whose settings are the same."""

    def __init__(self, settings: Settings, before: House | None) -> None:
        self.taken: list[object] = []
        self._settings = settings
        self._before = before

    def take(self, had: Callable[[House], T | None], make: Callable[[], T], *sections: str) -> T:
        """The part that the house before `had`, if these sections are as they were, else a new one."""
        before = self._before
        if before is None or any(getattr(before.settings, it) != getattr(self._settings, it) for it in sections):
            return make()
        taken = had(before)
        if taken is None:
            return make()
        self.taken.append(taken)
        return taken


def build_house(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    telemetry: Telemetry | None = None,
    verifiers: Sequence[tuple[str, Verifier]] | None = None,
    before: House | None = None,
) -> House:
    """The house that `settings` describe; secrets come from `environ`.

    `before` is the house whose place it takes, and from which it inherits reports, verdicts and whatever else lasts.

    Raises ConfigError when a secret is missing or an encoder cannot be loaded.

    The other arguments replace what the settings would give, for tests and for those who embed the proxy.
    """
    estate = _Estate(settings, before)
    telemetry = telemetry or estate.take(
        lambda old: old.telemetry, lambda: build_telemetry(settings.telemetry, environ, _named_models(settings))
    )
    transport = transport or AiohttpTransport()
    router = _router(settings, environ, transport)
    grounding = settings.grounding
    workers = Workers(grounding.workers, grounding.queue)
    shared = estate.take(lambda old: old.shared, lambda: _shared(settings), "cache")
    cache = estate.take(
        lambda old: old.completions.grounder.verification.cache,
        lambda: _verdict_cache(settings, shared),
        "cache",
    )
    reports = estate.take(lambda old: old.reports, lambda: Reports(grounding.keep_reports))
    reports.resize(grounding.keep_reports)
    verifiers = verifiers or estate.take(
        lambda old: old.completions.grounder.verification.verifiers, lambda: load_verifiers(settings.encoder), "encoder"
    )
    estimates = estate.take(
        lambda old: old.estimators.cache, lambda: _estimate_cache(settings, shared), *_DECIDE_ESTIMATES
    )
    estimators = _estimators(settings, environ, router, transport, workers, verifiers, telemetry, estimates)
    prover = Prover(workers, settings.policy, estimators, verifiers)
    memory = _memory(settings, prover, telemetry, estate)
    history = estate.take(lambda old: old.history, lambda: _history(settings))
    grounder = Grounder(
        verification=Verification(workers, cache, grounding.timeout, verifiers, ModelStage(estimators)),
        reports=reports,
        policy=settings.policy,
        telemetry=telemetry,
        log_rejections=settings.quotes.log_rejections,
        memory=memory,
        facts=_facts(settings),
        history=EarlierAnswers(history.exchanges) if history else None,
        recorder=Recorder(history, workers) if history else None,
        room=Room(grounding.max_bytes),
    )
    later = _later(settings, grounder, _webhook(settings, environ, transport, telemetry), estate)
    grounder = replace(grounder, later=later)
    stream = settings.stream
    completions = Completions(
        router,
        grounder,
        CompletionSettings(
            mode=grounding.mode if grounding.enabled else "off",
            timeout=grounding.timeout,
            max_answer=settings.server.max_body,
            stream=StreamSettings(stream.carrier, stream.tail_budget, stream.max_event),
        ),
        telemetry,
        Sampler(_sampling(settings), telemetry, workers, settings.policy, verifiers),
    )
    timeout = max(grounding.timeout, settings.hallucination.timeout)
    audits = estimators.is_on("trace_auditing")
    checks = Checks(grounder, prover, _auditor(settings, prover, router, telemetry), timeout, memory, audits)
    passage = PassThrough(router, telemetry)
    return House(
        settings,
        completions,
        passage,
        reports,
        telemetry,
        workers,
        estimators,
        checks,
        later,
        grounder.facts,
        history,
        estate.take(lambda old: old.limiter, lambda: _limiter(shared), "cache"),
        shared,
        tuple(estate.taken),
    )


def _shared(settings: Settings) -> SharedRedis | None:
    """What replicas share, where a Redis is named. Its library is loaded only for those who name one."""
    cache = settings.cache
    if cache.redis_url is None:
        return None
    from proxy.stores.shared.redis import SharedRedis

    try:
        return SharedRedis(cache.redis_url, cache.redis_timeout)
    except ValueError as error:
        raise ConfigError(["cache.redis_url: it is not a URL of a Redis"]) from error


def _verdict_cache(settings: Settings, shared: SharedRedis | None) -> VerdictCache:
    entries, ttl = settings.cache.max_entries, settings.cache.ttl
    if shared is None:
        return VerdictCache(entries, ttl)
    from proxy.stores.shared.values import SharedValues

    return VerdictCache(entries, ttl, further=SharedValues(shared, "verdict", Judgement, ttl))


def _estimate_cache(settings: Settings, shared: SharedRedis | None) -> Cache[Estimate]:
    entries, ttl = settings.cache.max_entries, settings.hallucination.cache_ttl
    if shared is None:
        return estimate_cache(entries, ttl)
    from proxy.stores.shared.values import SharedValues

    return estimate_cache(entries, ttl, SharedValues[Estimate](shared, "estimate", Probability, ttl))


def _limiter(shared: SharedRedis | None) -> Limiter:
    """Who gives turns to clients: this process alone, or all replicas together."""
    if shared is None:
        return LocalLimits()
    from proxy.stores.shared.limits import SharedLimits

    return SharedLimits(shared, LocalLimits())


def _named_models(settings: Settings) -> Iterator[str]:
    """The models that the settings call by their whole name."""
    for upstream in settings.upstreams.values():
        yield from (name for name in (*upstream.models, *upstream.aliases) if "*" not in name)


def _history(settings: Settings) -> History | None:
    """What was said, in a database, where one is named. SQLAlchemy is loaded only for those who name one."""
    store = settings.store
    if store.url is None:
        return None
    from proxy.stores.history.database import Database
    from proxy.stores.history.history import History
    from proxy.stores.history.retention import Keep
    from proxy.stores.history.writer import WriterSettings

    writing = WriterSettings(store.content, store.interval, store.batch, store.queue, store.queue_size)
    keep = Keep(store.keep, store.keep_count, store.keep_audit)
    return History(Database(store.url, store.database_schema), writing, keep)


def _facts(settings: Settings) -> FactsDatabase | None:
    """The database that is asked for values, where there is one."""
    facts = settings.facts
    if facts.url is None:
        return None
    from proxy.evidence.facts import FactsDatabase, Template

    templates = [Template(name, sql) for name, sql in facts.templates.items()]
    return FactsDatabase(facts.url, templates, facts.timeout, facts.max_rows)


def _memory(settings: Settings, prover: Prover, telemetry: Telemetry, estate: _Estate) -> Memory | None:
    """The memory gate, where it is on."""
    gate = settings.hallucination.memory_gate
    if not prover.estimators.is_on("memory_gate"):
        return None
    facts = estate.take(lambda old: old.checks.memory.facts if old.checks.memory else None, MemoryFacts)
    policy = GatePolicy(gate.min_confidence, gate.reject_unsupported)
    return Memory(prover, facts, policy, settings.hallucination.timeout, telemetry=telemetry)


def _auditor(settings: Settings, prover: Prover, router: Router, telemetry: Telemetry) -> Auditor:
    """The trace audit, with a model that derives answers where its backend is one."""
    hallucination, estimators = settings.hallucination, prover.estimators
    backend = estimators.operations.get("trace_auditing", "local")

    def executor(asker: Asker, within: float) -> Executor:
        route = router.choose(asker.model if backend == "self" else hallucination.backend.haiku_model)
        limits = Limits(1, estimators.at_once, asyncio.get_running_loop().time() + within)
        headers = asker.credentials if backend == "self" else ()
        upstream = route.upstream
        target = "/chat/completions"
        asking = Asking(upstream.name, upstream.send, target, limits, Meter(), headers, telemetry, upstream.provider)
        return ChatExecutor(asking, route.model)

    can_derive = backend in ("self", "haiku")
    checks_post_hoc = hallucination.trace_auditing.check_post_hoc
    return Auditor(prover, hallucination.timeout, checks_post_hoc, executor if can_derive else None)


def _sampling(settings: Settings) -> SamplingSettings:
    sampling = settings.sampling
    return SamplingSettings(
        sampling.enabled, sampling.samples, sampling.temperatures, sampling.on_request, sampling.timeout
    )


def _estimators(
    settings: Settings,
    environ: Mapping[str, str],
    router: Router,
    transport: httpx.AsyncBaseTransport,
    workers: Workers,
    verifiers: Sequence[tuple[str, Verifier]],
    telemetry: Telemetry,
    estimates: Cache[Estimate],
) -> Estimators:
    """Every backend that may be asked how likely a claim is, and which of them each operation asks."""
    hallucination = settings.hallucination
    policy = settings.policy

    def chat(route: Route, limits: Limits, meter: Meter, headers: Headers = ()) -> Backend:
        upstream = route.upstream
        target = "/chat/completions"
        asking = Asking(upstream.name, upstream.send, target, limits, meter, headers, telemetry, upstream.provider)
        estimator = ChatEstimator(asking, route.model, tells_logprobs=isinstance(upstream, OpenAIUpstream))
        return Backend(estimator, f"{upstream.name}/{route.model}")

    def own(asker: Asker, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(asker.model), limits, meter, asker.credentials)

    def haiku(_: Asker, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(hallucination.backend.haiku_model), limits, meter)

    def local(_: Asker, limits: Limits, __: Meter) -> Backend:
        return Backend(EmbeddedEstimator(workers.run, policy, limits.until, verifiers), "local")

    backends: dict[str, OpenBackend] = {"self": own, "haiku": haiku, "local": local}
    if hallucination.backend.external_url is not None:
        service = _external(hallucination.backend, environ, transport)

        def external(_: Asker, limits: Limits, meter: Meter) -> Backend:
            asking = Asking("external", service.send, "", limits, meter, (), telemetry, "custom", "estimate")
            return Backend(ServiceEstimator(asking), "external")

        backends["external"] = external
    return Estimators(
        backends,
        hallucination.operations,
        estimates,
        hallucination.batch_size,
        hallucination.timeout,
    )


def _external(
    settings: BackendSettings, environ: Mapping[str, str], transport: httpx.AsyncBaseTransport
) -> OpenAIUpstream:
    """The service of one's own, which is called as upstreams are."""
    key = environ.get(settings.external_key_env) if settings.external_key_env else None
    if settings.external_key_env and not key:
        problem = f"hallucination.backend.external_key_env: the variable {settings.external_key_env} is not set"
        raise ConfigError([problem])
    return OpenAIUpstream("external", settings.external_url or "", transport, key=key)


def _later(settings: Settings, grounder: Grounder, webhook: Webhook | None, estate: _Estate) -> Later | None:
    """What is left for later, and done by a grounder like this one that has more time."""
    jobs = settings.jobs
    if jobs.url is None:
        return None
    patient = replace(grounder, verification=replace(grounder.verification, timeout=jobs.timeout / 2))
    work = [
        Work(
            EXAMINATION,
            told_of(grounder.telemetry, EXAMINATION, patient.finish),
            attempts=jobs.attempts,
            timeout=jobs.timeout,
            at_once=jobs.at_once,
            then=WEBHOOK if webhook else None,
        )
    ]
    if webhook is not None:
        attempts, timeout = settings.webhook.attempts, 2 * settings.webhook.timeout
        post = told_of(grounder.telemetry, WEBHOOK, webhook.post)
        work.append(Work(WEBHOOK, post, attempts, timeout, at_once=4, first_wait=5.0, longest_wait=3600.0))
    store = JobStore(
        jobs.url,
        schema=jobs.database_schema,
        keep=jobs.keep,
        poll=jobs.poll,
        drain=jobs.drain,
        max_payload=jobs.max_payload,
    )
    runner = estate.take(lambda old: old.later.jobs if old.later else None, lambda: Jobs(store, work))
    return Later(runner, grounder.reports, work)


def _webhook(
    settings: Settings, environ: Mapping[str, str], transport: httpx.AsyncBaseTransport, telemetry: Telemetry
) -> Webhook | None:
    webhook = settings.webhook
    if webhook.url is None:
        return None
    if not environ.get(webhook.secret_env):
        raise ConfigError([f"webhook.secret_env: the variable {webhook.secret_env} is not set"])
    try:
        secret = environ[webhook.secret_env]
        return Webhook(webhook.url, secret, transport, timeout=webhook.timeout, telemetry=telemetry)
    except ValueError as error:
        raise ConfigError([f"webhook.secret_env: {webhook.secret_env} holds no base64 behind whsec_"]) from error


def _router(settings: Settings, environ: Mapping[str, str], transport: httpx.AsyncBaseTransport) -> Router:
    return Router(
        [
            Served(
                _limited(_upstream(name, each, environ, transport), each),
                each.models,
                each.aliases,
                Retries(**{**dict(each.retries), "statuses": frozenset(each.retries.statuses)}),
                each.instead,
                frozenset(each.fallback_on),
            )
            for name, each in settings.upstreams.items()
        ]
    )


def _limited(upstream: Upstream, settings: UpstreamSettings) -> Upstream:
    limits = UpstreamLimits(**dict(settings.limits))
    return LimitedUpstream(upstream, limits) if limits.max_concurrent or limits.per_minute else upstream


def _headers(name: str, settings: UpstreamSettings, environ: Mapping[str, str]) -> HeaderRules:
    """Which headers pass to an upstream and back, and which are added. Raises ConfigError when a secret is missing."""
    unset = [variable for variable in settings.headers_env.values() if not environ.get(variable)]
    if unset:
        raise ConfigError([f"upstreams.{name}.headers_env: the variable {each} is not set" for each in unset])
    secret = {header: environ[variable].strip() for header, variable in settings.headers_env.items()}
    is_anthropic = settings.dialect == "anthropic"
    return HeaderRules(
        None if settings.request_headers is None else AllowList(settings.request_headers),
        None if settings.response_headers is None else AllowList(settings.response_headers),
        tuple((header.lower().encode(), value.encode()) for header, value in {**settings.headers, **secret}.items()),
        ANTHROPIC_VERSION if is_anthropic else (),
        x_api_key if is_anthropic else bearer,
    )


def _upstream(
    name: str, settings: UpstreamSettings, environ: Mapping[str, str], transport: httpx.AsyncBaseTransport
) -> Upstream:
    key = None
    if settings.api_key_env is not None:
        key = environ.get(settings.api_key_env)
        if not key:
            raise ConfigError([f"upstreams.{name}.api_key_env: the variable {settings.api_key_env} is not set"])
    headers = _headers(name, settings, environ)
    if settings.dialect == "litellm":
        return LitellmUpstream(
            name,
            settings.litellm_model or "",
            key=key,
            base_url=settings.base_url,
            timeout=settings.timeout,
            headers=headers.added,
            truncation_alarm=settings.truncation_alarm,
        )
    return OpenAIUpstream(
        name,
        settings.base_url or "",
        transport,
        key=key,
        timeout=settings.timeout,
        connect_timeout=settings.connect_timeout,
        forwards_documents=settings.forwards_documents,
        headers=headers,
        truncation_alarm=settings.truncation_alarm,
        provider=settings.dialect,
        ollama_url=settings.ollama_url,
    )
