"""Build the components that call models: the estimators, and the memory gate and trace audit that use them."""

from __future__ import annotations

import asyncio

from proxy.evidence.asking import Asking
from proxy.evidence.chat import ChatEstimator
from proxy.evidence.embedded import EmbeddedEstimator
from proxy.evidence.estimator import Limits, Meter
from proxy.evidence.executor import ChatExecutor
from proxy.evidence.service import ServiceEstimator
from proxy.gateway.estimators import Asker, Backend, Estimators, OpenBackend
from proxy.gateway.memory import Memory
from proxy.gateway.proving import Prover
from proxy.gateway.trace import Auditor, Executor
from proxy.gateway.workers import Workers
from proxy.stores.cache import Cache
from proxy.stores.facts import MemoryFacts
from proxy.telemetry import Telemetry
from proxy.types import Estimate, Headers
from proxy.upstream.openai import OpenAIUpstream
from proxy.upstream.router import Route, Router
from proxy.verification.judge import Judge
from proxy.verification.memory import GatePolicy
from proxy.wiring.site import Site


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

    def own(asker: Asker, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(asker.model), limits, meter, asker.credentials)

    def haiku(_: Asker, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(hallucination.backend.haiku_model), limits, meter)

    def local(_: Asker, limits: Limits, __: Meter) -> Backend:
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

    def external(_: Asker, limits: Limits, meter: Meter) -> Backend:
        asking = Asking("external", service.send, "", limits, meter, (), site.telemetry, "custom", "estimate")
        return Backend(ServiceEstimator(asking), "external")

    return external


def build_memory(site: Site, prover: Prover) -> Memory | None:
    """Build the memory gate, if enabled."""
    hallucination = site.settings.hallucination
    if not prover.estimators.is_on("memory_gate"):
        return None
    facts = site.estate.take(lambda old: old.checks.memory.facts if old.checks.memory else None, MemoryFacts)
    policy = GatePolicy(hallucination.memory_gate.min_confidence, hallucination.memory_gate.reject_unsupported)
    return Memory(prover, facts, policy, hallucination.timeout, telemetry=site.telemetry)


def build_auditor(site: Site, prover: Prover, router: Router) -> Auditor:
    """Build the trace auditor, with a model that derives answers if its backend is one."""
    hallucination, estimators = site.settings.hallucination, prover.estimators
    backend = estimators.operations.get("trace_auditing", "local")

    def executor(asker: Asker, within: float) -> Executor:
        route = router.choose(asker.model if backend == "self" else hallucination.backend.haiku_model)
        limits = Limits(1, estimators.at_once, asyncio.get_running_loop().time() + within)
        headers = asker.credentials if backend == "self" else ()
        return ChatExecutor(_asking(route, limits, Meter(), headers, site.telemetry), route.model)

    can_derive = backend in ("self", "haiku")
    checks_post_hoc = hallucination.trace_auditing.check_post_hoc
    return Auditor(prover, hallucination.timeout, checks_post_hoc, executor if can_derive else None)


def _asking(route: Route, limits: Limits, meter: Meter, headers: Headers, telemetry: Telemetry) -> Asking:
    """Return the parameters of calls to a model at its upstream."""
    upstream = route.upstream
    return Asking(
        upstream.name, upstream.send, "/chat/completions", limits, meter, headers, telemetry, upstream.provider
    )
