"""Build the components that call models: the estimators, and the memory gate and trace audit that use them."""

from __future__ import annotations

import asyncio

from groundwire.backends.estimators import ChatEstimator, ChatExecutor, EmbeddedEstimator, ServiceEstimator
from groundwire.backends.model_client import Limits, Meter, ModelClient
from groundwire.container.context import BuildContext
from groundwire.domain import Estimate
from groundwire.features.memory import GatePolicy
from groundwire.gateway.claim_checker import Auditor, ClaimChecker, Executor
from groundwire.gateway.memory import Memory
from groundwire.gateway.models import Backend, Caller, Estimators, OpenBackend
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.storage.cache import Cache
from groundwire.storage.facts import FactStore
from groundwire.telemetry import Telemetry
from groundwire.upstream.openai import OpenAIUpstream
from groundwire.upstream.router import Route, Router
from groundwire.wire import Headers


def build_estimators(
    context: BuildContext,
    router: Router,
    workers: Workers,
    judge: Judge,
    estimates: Cache[Estimate],
) -> Estimators:
    """Build every backend that estimates probabilities, and assign one to each operation.

    Raises ConfigError when a secret is missing.
    """
    hallucination, policy = context.settings.hallucination, context.settings.policy

    def chat(route: Route, limits: Limits, meter: Meter, headers: Headers = ()) -> Backend:
        client = _model_client(route, limits, meter, headers, context.telemetry)
        estimator = ChatEstimator(client, route.model, has_logprobs=isinstance(route.upstream, OpenAIUpstream))
        return Backend(estimator, f"{route.upstream.name}/{route.model}")

    def own(caller: Caller, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(caller.model), limits, meter, caller.credentials)

    def haiku(_: Caller, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(hallucination.backend.haiku_model), limits, meter)

    def local(_: Caller, limits: Limits, __: Meter) -> Backend:
        return Backend(EmbeddedEstimator(workers.run, policy, limits.until, judge), "local")

    backends: dict[str, OpenBackend] = {"self": own, "haiku": haiku, "local": local}
    if hallucination.backend.external_url is not None:
        backends["external"] = _external(context, hallucination.backend.external_url)
    return Estimators(backends, hallucination.operations, estimates, hallucination.batch_size, hallucination.timeout)


def _external(context: BuildContext, url: str) -> OpenBackend:
    """Build the backend of an external service, which is called like an upstream."""
    variable = context.settings.hallucination.backend.external_key_env
    key = context.secret(variable, "hallucination.backend.external_key_env") if variable else None
    service = OpenAIUpstream("external", url, context.transport, key=key)

    def external(_: Caller, limits: Limits, meter: Meter) -> Backend:
        client = ModelClient("external", service.send, "", limits, meter, (), context.telemetry, "custom", "estimate")
        return Backend(ServiceEstimator(client), "external")

    return external


def build_memory(context: BuildContext, checker: ClaimChecker, facts: FactStore) -> Memory | None:
    """Build the memory gate over the stored facts, if enabled."""
    hallucination = context.settings.hallucination
    if not checker.estimators.is_on("memory_gate"):
        return None
    policy = GatePolicy(hallucination.memory_gate.min_confidence, hallucination.memory_gate.reject_unsupported)
    return Memory(checker, facts, policy, hallucination.timeout, telemetry=context.telemetry)


def build_auditor(context: BuildContext, checker: ClaimChecker, router: Router) -> Auditor:
    """Build the trace auditor, with a model that derives answers if its backend is one."""
    hallucination, estimators = context.settings.hallucination, checker.estimators
    backend = estimators.operations.get("trace_auditing", "local")

    def executor(caller: Caller, seconds: float) -> Executor:
        route = router.choose(caller.model if backend == "self" else hallucination.backend.haiku_model)
        limits = Limits(1, estimators.at_once, asyncio.get_running_loop().time() + seconds)
        headers = caller.credentials if backend == "self" else ()
        return ChatExecutor(_model_client(route, limits, Meter(), headers, context.telemetry), route.model)

    can_derive = backend in ("self", "haiku")
    checks_post_hoc = hallucination.trace_auditing.check_post_hoc
    return Auditor(checker, hallucination.timeout, checks_post_hoc, executor if can_derive else None)


def _model_client(route: Route, limits: Limits, meter: Meter, headers: Headers, telemetry: Telemetry) -> ModelClient:
    """Return the parameters of calls to a model at its upstream."""
    upstream = route.upstream
    return ModelClient(
        upstream.name, upstream.send, "/chat/completions", limits, meter, headers, telemetry, upstream.provider
    )
