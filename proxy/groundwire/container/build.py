"""Build all components, in the order of their dependencies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import httpx

from groundwire.backends.loading import judge_identity
from groundwire.config import Settings
from groundwire.container.container import Container, ProcessResources
from groundwire.container.models import build_auditor, build_estimators, build_language_judges, build_memory
from groundwire.container.stores import (
    build_estimate_cache,
    build_facts,
    build_limiter,
    build_verdict_cache,
    connect_redis,
)
from groundwire.container.upstreams import BuildContext, build_router, check_extras
from groundwire.errors import ConfigError
from groundwire.gateway.checks import Checks
from groundwire.gateway.claims import ClaimChecker
from groundwire.gateway.completion import Completions
from groundwire.gateway.deferred import CHECK, EXAMINATION, WEBHOOK, DeferredQueue, traced
from groundwire.gateway.forward import PassThrough
from groundwire.gateway.repeat import Corrector, Sampler
from groundwire.gateway.reports import Recorder
from groundwire.gateway.service import AnswerHistory, ExternalContextLoader, GroundingService
from groundwire.gateway.session import verify_deferred
from groundwire.gateway.stream import StreamSettings
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.limits import Capacity, ConcurrencyLimiter
from groundwire.storage.transact import JobStore, Work
from groundwire.telemetry import Telemetry
from groundwire.upstream.http import AiohttpClient, HttpxClient
from groundwire.upstream.webhook import Webhook


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
    estimators = build_estimators(
        context,
        router,
        workers,
        judge,
        build_estimate_cache(settings.cache, settings.information_budget.cache_ttl, shared),
    )
    checker = ClaimChecker(workers, policy, estimators, judge, judging)
    memory = build_memory(context, checker, resources.memory_facts)
    facts = build_facts(settings.facts) if settings.numeric.facts else None
    service = GroundingService(
        workers,
        build_verdict_cache(settings.cache, shared),
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
            AnswerHistory(history.exchanges) if history else None,
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
        max(grounding.timeout, settings.information_budget.timeout, judging.timeout if judging else 0.0),
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


def build_deferred(
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
    store = JobStore(
        jobs.url,
        schema=jobs.database_schema,
        keep=jobs.keep,
        poll=jobs.poll,
        drain=jobs.drain,
        max_payload=jobs.max_payload,
    )
    return DeferredQueue(resources.jobs(store, work), service.reports, work)


def _webhook(context: BuildContext) -> Webhook | None:
    webhook = context.settings.webhook
    if webhook.url is None:
        return None
    secret = context.secret(webhook.secret_env, "webhook.secret_env")
    try:
        return Webhook(webhook.url, secret, context.transport, timeout=webhook.timeout, telemetry=context.telemetry)
    except ValueError as error:
        raise ConfigError([f"webhook.secret_env: {webhook.secret_env} holds no base64 behind whsec_"]) from error
