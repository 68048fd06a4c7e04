"""Build the components that call models: the estimators, and the memory gate and trace audit that use them."""

from __future__ import annotations

import asyncio

from groundwire.backends.asking import Asking
from groundwire.backends.chat import ChatEstimator
from groundwire.backends.embedded import EmbeddedEstimator
from groundwire.backends.estimator import Limits, Meter
from groundwire.backends.executor import ChatExecutor
from groundwire.backends.service import ServiceEstimator
from groundwire.container.site import Site
from groundwire.domain import Estimate
from groundwire.features.memory import GatePolicy
from groundwire.gateway.claim_checker import Auditor, ClaimChecker, Executor
from groundwire.gateway.memory import Memory
from groundwire.gateway.models import Backend, Caller, Estimators, OpenBackend
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.storage.cache import Cache
from groundwire.storage.facts import MemoryFacts
from groundwire.telemetry import Telemetry
from groundwire.upstream.openai import OpenAIUpstream
from groundwire.upstream.router import Route, Router
from groundwire.wire import Headers


def build_estimators(
    site: Site,
    router: Router,
    workers: Workers,
    judge: Judge,
    estimates: Cache[Estimate],
) -> Estimators:
    """Build every backend that estimates probabilities, and assign one to each operation.

    Raises ConfigError when a secret is missing.
    """
    hallucination, policy = site.settings.hallucination, site.settings.policy

    def chat(route: Route, limits: Limits, meter: Meter, headers: Headers = ()) -> Backend:
        asking = _asking(route, limits, meter, headers, site.telemetry)
        estimator = ChatEstimator(asking, route.model, tells_logprobs=isinstance(route.upstream, OpenAIUpstream))
        return Backend(estimator, f"{route.upstream.name}/{route.model}")

    def own(caller: Caller, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(caller.model), limits, meter, caller.credentials)

    def haiku(_: Caller, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(hallucination.backend.haiku_model), limits, meter)

    def local(_: Caller, limits: Limits, __: Meter) -> Backend:
        return Backend(EmbeddedEstimator(workers.run, policy, limits.until, judge), "local")

    backends: dict[str, OpenBackend] = {"self": own, "haiku": haiku, "local": local}
    if hallucination.backend.external_url is not None:
        backends["external"] = _external(site, hallucination.backend.external_url)
    return Estimators(backends, hallucination.operations, estimates, hallucination.batch_size, hallucination.timeout)


def _external(site: Site, url: str) -> OpenBackend:
    """Build the backend of an external service, which is called like an upstream."""
    variable = site.settings.hallucination.backend.external_key_env
    key = site.secret(variable, "hallucination.backend.external_key_env") if variable else None
    service = OpenAIUpstream("external", url, site.transport, key=key)

    def external(_: Caller, limits: Limits, meter: Meter) -> Backend:
        asking = Asking("external", service.send, "", limits, meter, (), site.telemetry, "custom", "estimate")
        return Backend(ServiceEstimator(asking), "external")

    return external


def build_memory(site: Site, checker: ClaimChecker) -> Memory | None:
    """Build the memory gate, if enabled."""
    hallucination = site.settings.hallucination
    if not checker.estimators.is_on("memory_gate"):
        return None
    facts = site.estate.take(lambda old: old.checks.memory.facts if old.checks.memory else None, MemoryFacts)
    policy = GatePolicy(hallucination.memory_gate.min_confidence, hallucination.memory_gate.reject_unsupported)
    return Memory(checker, facts, policy, hallucination.timeout, telemetry=site.telemetry)


def build_auditor(site: Site, checker: ClaimChecker, router: Router) -> Auditor:
    """Build the trace auditor, with a model that derives answers if its backend is one."""
    hallucination, estimators = site.settings.hallucination, checker.estimators
    backend = estimators.operations.get("trace_auditing", "local")

    def executor(caller: Caller, within: float) -> Executor:
        route = router.choose(caller.model if backend == "self" else hallucination.backend.haiku_model)
        limits = Limits(1, estimators.at_once, asyncio.get_running_loop().time() + within)
        headers = caller.credentials if backend == "self" else ()
        return ChatExecutor(_asking(route, limits, Meter(), headers, site.telemetry), route.model)

    can_derive = backend in ("self", "haiku")
    checks_post_hoc = hallucination.trace_auditing.check_post_hoc
    return Auditor(checker, hallucination.timeout, checks_post_hoc, executor if can_derive else None)


def _asking(route: Route, limits: Limits, meter: Meter, headers: Headers, telemetry: Telemetry) -> Asking:
    """Return the parameters of calls to a model at its upstream."""
    upstream = route.upstream
    return Asking(
        upstream.name, upstream.send, "/chat/completions", limits, meter, headers, telemetry, upstream.provider
    )
