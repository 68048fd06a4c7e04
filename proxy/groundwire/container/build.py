"""Build all components, in the order of their dependencies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import httpx

from groundwire.backends.loading import judge_identity
from groundwire.config import Settings
from groundwire.container.container import Container
from groundwire.container.context import BuildContext
from groundwire.container.deferred import build_deferred
from groundwire.container.extras import check_extras
from groundwire.container.judging import build_language_judges
from groundwire.container.models import build_auditor, build_estimators, build_memory
from groundwire.container.resources import ProcessResources
from groundwire.container.stores import (
    build_estimate_cache,
    build_facts,
    build_limiter,
    build_verdict_cache,
    connect_redis,
)
from groundwire.container.upstreams import build_router
from groundwire.gateway.checks import Checks
from groundwire.gateway.claims import ClaimChecker
from groundwire.gateway.completion import Completions
from groundwire.gateway.forward import PassThrough
from groundwire.gateway.repeat import Corrector, Sampler
from groundwire.gateway.reports import Recorder
from groundwire.gateway.service import EarlierAnswers, ExternalContextLoader, GroundingService
from groundwire.gateway.stream import StreamSettings
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.limits import Capacity, ConcurrencyLimiter
from groundwire.telemetry import Telemetry
from groundwire.upstream.aiohttp_client import AiohttpClient
from groundwire.upstream.http import HttpxClient


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
    check_extras(settings)
    resources = resources or ProcessResources(settings, environ, telemetry)
    telemetry, history = resources.telemetry, resources.history
    context = BuildContext(settings, environ, HttpxClient(transport) if transport else AiohttpClient(), telemetry)
    router = build_router(context)
    grounding = settings.grounding
    workers = Workers(grounding.workers, grounding.queue)
    shared = connect_redis(settings.cache)
    identity = "" if judge and not settings.judge.is_language else judge_identity(settings.judge)
    policy = replace(settings.policy, judge=identity)
    judging = build_language_judges(context, router)
    judge = judge or resources.judge(settings.judge.encoder)
    estimators = build_estimators(context, router, workers, judge, build_estimate_cache(settings, shared))
    checker = ClaimChecker(workers, policy, estimators, judge, judging)
    memory = build_memory(context, checker, resources.memory_facts)
    facts = build_facts(settings.facts) if settings.numeric.facts else None
    service = GroundingService(
        workers,
        build_verdict_cache(settings, shared),
        resources.reports,
        policy,
        telemetry,
        grounding.timeout,
        judge=judging.judge(judge) if judging else judge,
        estimators=estimators if estimators.is_on("output_verification") else None,
        language_judges=judging,
        log_rejections=settings.quotes.log_rejections,
        external_context=ExternalContextLoader(
            memory,
            facts,
            EarlierAnswers(history.exchanges) if history else None,
            comparing=settings.consistency.enabled,
        ),
        recorder=Recorder(history, workers) if history else None,
        budget=ConcurrencyLimiter(Capacity(size=grounding.max_bytes)),
    )
    completions = Completions(
        router,
        service,
        telemetry,
        Sampler(telemetry, workers, policy, judge, **dict(settings.sampling)),
        Corrector(telemetry, service.schemas, workers, **dict(settings.correction)),
        grounding.mode if grounding.enabled else "off",
        grounding.timeout,
        settings.server.max_body,
        StreamSettings(settings.stream.carrier, settings.stream.tail_budget, settings.stream.max_event),
    )
    checks = Checks(
        completions,
        checker,
        build_auditor(context, checker, router),
        max(grounding.timeout, settings.hallucination.timeout, judging.timeout if judging else 0.0),
        memory,
        estimators.is_on("trace_auditing"),
    )
    later = build_deferred(context, service, checks, resources)
    completions = replace(completions, grounding=replace(service, queue=later))
    return Container(
        settings=settings,
        resources=resources,
        completions=completions,
        passage=PassThrough(router, telemetry),
        workers=workers,
        encoder=judge,
        estimators=estimators,
        checks=replace(checks, completions=completions),
        later=later,
        facts=facts,
        limiter=build_limiter(shared),
        shared=shared,
    )
