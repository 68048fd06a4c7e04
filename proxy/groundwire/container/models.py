"""Build everything that calls models: the judge, the estimators, and the memory gate and trace audit that use them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread

import httpx
from cachetools import LRUCache

from groundwire.backends.estimators import ChatEstimator, ChatExecutor, EmbeddedEstimator, ServiceEstimator
from groundwire.backends.judge_prompts import find_prompt_profile
from groundwire.backends.language_judge import ChatJudge, LanguageJudge, ServiceJudge
from groundwire.backends.loading import load_judge
from groundwire.backends.model_client import Limits, Meter, ModelClient
from groundwire.config import Settings
from groundwire.container.upstreams import BuildContext, build_router
from groundwire.domain import Estimate
from groundwire.errors import ConfigError, UnknownModel
from groundwire.features.memory import GatePolicy
from groundwire.gateway.claims import Auditor, ClaimChecker, Executor, Memory
from groundwire.gateway.forward import Caller
from groundwire.gateway.models import Backend, Estimators, LanguageJudges, OpenBackend, OpenJudge
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge
from groundwire.storage.cache import Cache
from groundwire.storage.memory import MemoryFacts
from groundwire.telemetry import Telemetry
from groundwire.upstream.http import AiohttpClient, HttpxClient
from groundwire.upstream.router import Route, Router
from groundwire.upstream.upstream import OpenAIUpstream, Upstream
from groundwire.wire import Headers

_MAX_MODELS = 1024  # whose form of the question is remembered: with `self`, clients name the models


def build_language_judges(context: BuildContext, router: Router) -> LanguageJudges | None:
    """Return the factory of the judging language model; None if the judge is an encoder or off.

    Raises ConfigError when no upstream serves the model, or a profile or a secret is missing.
    """
    judge = context.settings.judge
    if not judge.is_language:
        return None
    open_ = _service(context) if judge.by == "external" else _chat(context, router)
    batch_size, at_once = context.settings.information_budget.batch_size, asyncio.Semaphore(judge.max_concurrent)
    return LanguageJudges(open_, judge.timeout, at_once, batch_size, judge.max_chars, judge.by == "self")


def _chat(context: BuildContext, router: Router) -> OpenJudge:
    judge, forms = context.settings.judge, LRUCache[str, int](_MAX_MODELS)
    if judge.by != "self":
        _check_model(router, judge.by)
    if judge.profile is not None:
        find_prompt_profile(judge.by, judge.profile)

    def open_(caller: Caller, limits: Limits, meter: Meter) -> LanguageJudge:
        route = router.choose(caller.model if judge.by == "self" else judge.by)
        profile = find_prompt_profile(route.model, judge.profile)
        client = _model_client(route.upstream, limits, meter, _credentials(route, caller, router), context.telemetry)
        has_logprobs = isinstance(route.upstream, OpenAIUpstream)
        return ChatJudge(client, route.model, profile, forms, has_logprobs=has_logprobs)

    return open_


def _check_model(router: Router, model: str) -> None:
    try:
        router.choose(model)
    except UnknownModel as error:
        raise ConfigError([f"judge.by: {error}"]) from error


def _credentials(route: Route, caller: Caller, router: Router) -> Headers:
    """Return the client's credentials, if its own request goes to the same upstream."""
    try:
        is_same = bool(caller.model) and router.choose(caller.model).upstream is route.upstream
    except UnknownModel:
        is_same = False
    return caller.credentials if is_same else ()


def _model_client(
    upstream: Upstream,
    limits: Limits,
    meter: Meter,
    headers: Headers,
    telemetry: Telemetry,
    target: str = "/chat/completions",
    operation: str = "chat",
) -> ModelClient:
    """Return the parameters of calls to a model at its upstream."""
    return ModelClient(
        upstream.name, upstream.send, target, limits, meter, headers, telemetry, upstream.provider, operation
    )


def _service(context: BuildContext) -> OpenJudge:
    judge = context.settings.judge
    client = _service_client(context, "judge", judge.url or "", judge.key_env, "judge.key_env")
    return lambda _, limits, meter: ServiceJudge(client(limits, meter))


def _service_client(
    context: BuildContext, name: str, url: str, variable: str | None, setting: str
) -> Callable[[Limits, Meter], ModelClient]:
    """Return the clients of an external service that estimates probabilities. Raises ConfigError without its key."""
    key = context.secret(variable, setting) if variable else None
    upstream = OpenAIUpstream(name, url, context.transport, key=key, provider="custom")
    return lambda limits, meter: _model_client(upstream, limits, meter, (), context.telemetry, "", "estimate")


@contextmanager
def open_judge(
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
    transport: httpx.AsyncBaseTransport | None = None,
) -> Iterator[Judge]:
    """Yield a judge for code without an event loop; a separate thread runs one to ask a language model.

    Raises ConfigError as the server would, and for `self`: no model has answered here.
    """
    encoder = load_judge(settings.judge.encoder)
    if settings.judge.by == "self":
        raise ConfigError(["judge.by: self is the model that answered, which only the proxy knows; name a model"])
    if not settings.judge.is_language:
        yield encoder
        return
    context = BuildContext(settings, environ, HttpxClient(transport) if transport else AiohttpClient(), Telemetry())
    router = build_router(context)
    judges = build_language_judges(context, router)
    assert judges is not None  # noqa: S101 - it is a language model
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="groundwire-judge", daemon=True)
    thread.start()

    async def start() -> Judge:
        return judges.blocking(encoder, Caller())

    async def close() -> None:
        for upstream in router.upstreams:
            await upstream.aclose()
        await context.transport.aclose()

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        judges.waiting.close()


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
    budget, policy = context.settings.information_budget, context.settings.policy

    def chat(route: Route, limits: Limits, meter: Meter, headers: Headers = ()) -> Backend:
        client = _model_client(route.upstream, limits, meter, headers, context.telemetry)
        estimator = ChatEstimator(client, route.model, has_logprobs=isinstance(route.upstream, OpenAIUpstream))
        return Backend(estimator, f"{route.upstream.name}/{route.model}")

    def own(caller: Caller, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(caller.model), limits, meter, caller.credentials)

    def haiku(_: Caller, limits: Limits, meter: Meter) -> Backend:
        return chat(router.choose(budget.backend.haiku_model), limits, meter)

    def local(_: Caller, limits: Limits, __: Meter) -> Backend:
        return Backend(EmbeddedEstimator(workers.run, policy, limits.until, judge), "local")

    backends: dict[str, OpenBackend] = {"self": own, "haiku": haiku, "local": local}
    if (url := budget.backend.external_url) is not None:
        variable = budget.backend.external_key_env
        external = _service_client(context, "external", url, variable, "information_budget.backend.external_key_env")
        backends["external"] = lambda _, limits, meter: Backend(ServiceEstimator(external(limits, meter)), "external")
    return Estimators(backends, budget.operations, estimates, budget.batch_size, budget.timeout)


def build_memory(context: BuildContext, checker: ClaimChecker, facts: MemoryFacts) -> Memory | None:
    """Build the memory gate over the stored facts, if enabled."""
    budget = context.settings.information_budget
    if not checker.estimators.is_on("memory_gate"):
        return None
    policy = GatePolicy(budget.memory_gate.min_confidence, budget.memory_gate.reject_unsupported)
    return Memory(checker, facts, policy, budget.timeout, telemetry=context.telemetry)


def build_auditor(context: BuildContext, checker: ClaimChecker, router: Router) -> Auditor:
    """Build the trace auditor, with a model that derives answers if its backend is one."""
    budget, estimators = context.settings.information_budget, checker.estimators
    backend = estimators.operations.get("trace_auditing", "local")

    def executor(caller: Caller, seconds: float) -> Executor:
        route = router.choose(caller.model if backend == "self" else budget.backend.haiku_model)
        limits = Limits(1, estimators.at_once, asyncio.get_running_loop().time() + seconds)
        headers = caller.credentials if backend == "self" else ()
        return ChatExecutor(_model_client(route.upstream, limits, Meter(), headers, context.telemetry), route.model)

    can_derive = backend in ("self", "haiku")
    checks_post_hoc = budget.trace_auditing.check_post_hoc
    return Auditor(checker, budget.timeout, checks_post_hoc, executor if can_derive else None)
