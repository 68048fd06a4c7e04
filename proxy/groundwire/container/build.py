"""Build all components, in the order of their dependencies."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

import httpx

from groundwire.backends.loading import judge_identity, start_judge
from groundwire.config import Settings
from groundwire.container.container import House
from groundwire.container.deferred import build_later
from groundwire.container.extras import check_extras
from groundwire.container.judging import build_language_judges
from groundwire.container.models import build_auditor, build_estimators, build_memory
from groundwire.container.site import Estate, Site
from groundwire.container.stores import (
    build_estimate_cache,
    build_facts,
    build_history,
    build_limiter,
    build_verdict_cache,
    connect_redis,
)
from groundwire.container.upstreams import build_router
from groundwire.gateway.byte_budget import Room
from groundwire.gateway.cascade import ModelStage
from groundwire.gateway.checks import Checks
from groundwire.gateway.completion import Completions, CompletionSettings
from groundwire.gateway.correction import CorrectionSettings, Corrector
from groundwire.gateway.earlier import EarlierAnswers
from groundwire.gateway.grounding import Grounder
from groundwire.gateway.passthrough import PassThrough
from groundwire.gateway.proving import Prover
from groundwire.gateway.recall import Recaller
from groundwire.gateway.record import Recorder
from groundwire.gateway.sampling import Sampler, SamplingSettings
from groundwire.gateway.stream import StreamSettings
from groundwire.gateway.verify import Verification
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.storage.reports import Reports
from groundwire.telemetry import Telemetry, build_telemetry
from groundwire.upstream.transport import AiohttpTransport

_DECIDE_ESTIMATES = ("cache", "hallucination", "upstreams", "judge")  # settings that a model's estimates depend on


def build_house(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    telemetry: Telemetry | None = None,
    judge: Judge | None = None,
    before: House | None = None,
) -> House:
    """Build the components that `settings` describe; secrets come from `environ`.

    `before` holds the components to replace; reports, cached verdicts and other lasting parts are taken over from it.

    Raises ConfigError when an extra or a secret is missing, or the entailment model in the settings is not available.

    The other arguments replace parts that the settings would build, for tests and for embedding the proxy.
    """
    check_extras(settings)
    estate = Estate(settings, before)
    telemetry = telemetry or estate.take(
        lambda old: old.telemetry, lambda: build_telemetry(settings.telemetry, environ, _named_models(settings))
    )
    site = Site(settings, environ, transport or AiohttpTransport(), telemetry, estate)
    router = build_router(site)
    grounding = settings.grounding
    workers = Workers(grounding.workers, grounding.queue)
    shared = estate.take(lambda old: old.shared, lambda: connect_redis(settings.cache), "cache")
    cache = estate.take(
        lambda old: old.completions.grounder.verification.cache,
        lambda: build_verdict_cache(settings, shared),
        "cache",
    )
    reports = estate.take(lambda old: old.reports, lambda: Reports(grounding.keep_reports))
    reports.resize(grounding.keep_reports)
    identity = "" if judge and not settings.judge.is_language else judge_identity(settings.judge)
    policy = replace(settings.policy, judge=identity)
    judging = build_language_judges(site, router)
    judge = judge or estate.take(lambda old: old.encoder, lambda: start_judge(settings.judge.encoder), "judge")
    estimates = estate.take(
        lambda old: old.estimators.cache, lambda: build_estimate_cache(settings, shared), *_DECIDE_ESTIMATES
    )
    estimators = build_estimators(site, router, workers, judge, estimates)
    prover = Prover(workers, policy, estimators, judge, judging)
    memory = build_memory(site, prover)
    history = estate.take(lambda old: old.history, lambda: build_history(settings.store))
    facts = build_facts(settings.facts) if settings.numeric.facts else None
    grounder = Grounder(
        verification=Verification(
            workers,
            cache,
            grounding.timeout,
            judging.judge(judge) if judging else judge,
            ModelStage(estimators),
            judging,
        ),
        reports=reports,
        policy=policy,
        telemetry=telemetry,
        log_rejections=settings.quotes.log_rejections,
        recaller=Recaller(
            memory,
            facts,
            EarlierAnswers(history.exchanges) if history else None,
            comparing=settings.consistency.enabled,
        ),
        recorder=Recorder(history, workers) if history else None,
        room=Room(grounding.max_bytes),
    )
    sampler = Sampler(_sampling(settings), telemetry, workers, policy, judge)
    corrector = Corrector(_correction(settings), telemetry, grounder.verification.schemas, workers)
    completions = Completions(router, grounder, _completing(settings), telemetry, sampler, corrector)
    checks = Checks(
        completions,
        prover,
        build_auditor(site, prover, router),
        max(grounding.timeout, settings.hallucination.timeout, judging.timeout if judging else 0.0),
        memory,
        estimators.is_on("trace_auditing"),
    )
    later = build_later(site, grounder, checks)
    completions = replace(completions, grounder=replace(grounder, later=later))
    return House(
        settings=settings,
        completions=completions,
        passage=PassThrough(router, telemetry),
        reports=reports,
        telemetry=telemetry,
        workers=workers,
        encoder=judge,
        estimators=estimators,
        checks=replace(checks, completions=completions),
        later=later,
        facts=facts,
        history=history,
        limiter=estate.take(lambda old: old.limiter, lambda: build_limiter(shared), "cache"),
        shared=shared,
        inherited=tuple(estate.taken),
    )


def _named_models(settings: Settings) -> Iterator[str]:
    """Yield the models that the settings name without a wildcard."""
    for upstream in settings.upstreams.values():
        yield from (name for name in (*upstream.models, *upstream.aliases) if "*" not in name)


def _completing(settings: Settings) -> CompletionSettings:
    grounding, stream = settings.grounding, settings.stream
    return CompletionSettings(
        mode=grounding.mode if grounding.enabled else "off",
        timeout=grounding.timeout,
        max_answer=settings.server.max_body,
        stream=StreamSettings(stream.carrier, stream.tail_budget, stream.max_event),
    )


def _correction(settings: Settings) -> CorrectionSettings:
    correction = settings.correction
    return CorrectionSettings(correction.enabled, correction.on_request, correction.timeout)


def _sampling(settings: Settings) -> SamplingSettings:
    sampling = settings.sampling
    return SamplingSettings(
        sampling.enabled, sampling.samples, sampling.temperatures, sampling.on_request, sampling.timeout
    )
