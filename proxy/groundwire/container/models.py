"""Build the model servers, the router, and all that calls models: judge, estimators, memory gate and trace audit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

import httpx
from cachetools import LRUCache

from groundwire.backends.estimators import ChatEstimator, ChatExecutor, EmbeddedEstimator, ServiceEstimator
from groundwire.backends.language_judge import ChatJudge, LanguageJudge, ServiceJudge, find_prompt_profile
from groundwire.backends.loading import load_judge
from groundwire.backends.model_client import Limits, Meter, ModelClient
from groundwire.config import Settings
from groundwire.config import Upstream as UpstreamSettings
from groundwire.domain import Estimate
from groundwire.errors import ConfigError, UnknownModel
from groundwire.extras import require_extras
from groundwire.features.memory import GatePolicy
from groundwire.gateway.claims import Auditor, ClaimChecker, Memory
from groundwire.gateway.forward import Caller
from groundwire.gateway.models import Backend, Estimators, LanguageJudges, OpenBackend, OpenJudge
from groundwire.judge import Judge
from groundwire.offload import Workers
from groundwire.storage.cache import Cache
from groundwire.storage.memory import MemoryFacts
from groundwire.telemetry import Telemetry
from groundwire.upstream.http import AiohttpClient, HttpClient, HttpxClient
from groundwire.upstream.litellm import LitellmUpstream, MediaHosts, read_host
from groundwire.upstream.router import Route, Router, UpstreamModels
from groundwire.upstream.upstream import (
    ANTHROPIC_VERSION,
    HeaderRules,
    LimitedUpstream,
    OpenAIUpstream,
    Upstream,
    allow_list,
    bearer,
    x_api_key,
)
from groundwire.wire import Headers

_MAX_MODELS = 1024  # whose form of the question is remembered: with `self`, clients name the models


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The inputs that all builders share; secrets come from `environ`."""

    settings: Settings
    environ: Mapping[str, str]
    transport: HttpClient
    telemetry: Telemetry

    def secret(self, variable: str, setting: str) -> str:
        """Return the value of a variable. Raises ConfigError, naming the setting that refers to it, when it is
        not set.
        """
        secret = self.environ.get(variable)
        if not secret:
            raise ConfigError([f"{setting}: the variable {variable} is not set"])
        return secret


def upstream_extras(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield each setting of an upstream that needs an extra, with the extra."""
    for name, upstream in settings.upstreams.items():
        if upstream.dialect == "litellm":
            yield f"upstreams.{name}.dialect", "providers"


def build_router(context: BuildContext) -> Router:
    """Build all model servers and the router. Raises ConfigError, naming every missing extra or secret."""
    require_extras(*upstream_extras(context.settings))
    upstreams = context.settings.upstreams.items()
    if missing := [problem for name, each in upstreams for problem in _missing(name, each, context.environ)]:
        raise ConfigError(missing)
    return Router(
        [
            UpstreamModels(
                _upstream(name, each, context),
                each.models,
                each.aliases,
                each.retries,
                each.instead,
                frozenset(each.fallback_on),
            )
            for name, each in upstreams
        ]
    )


def _missing(name: str, settings: UpstreamSettings, environ: Mapping[str, str]) -> Iterator[str]:
    key = settings.api_key_env
    if key is not None and not environ.get(key):
        yield f"upstreams.{name}.api_key_env: the variable {key} is not set"
    for each in settings.headers_env.values():
        if not environ.get(each):
            yield f"upstreams.{name}.headers_env: the variable {each} is not set"


def _upstream(name: str, settings: UpstreamSettings, context: BuildContext) -> Upstream:
    """Build a model server with its limits."""
    key = None if settings.api_key_env is None else context.environ[settings.api_key_env]
    secret = {header: context.environ[variable].strip() for header, variable in settings.headers_env.items()}
    added = tuple((header.lower().encode(), value.encode()) for header, value in {**settings.headers, **secret}.items())
    is_anthropic = settings.dialect == "anthropic"
    upstream: Upstream
    if settings.dialect == "litellm":
        upstream = LitellmUpstream(
            name,
            settings.litellm_model or "",
            key=key,
            base_url=settings.base_url,
            timeout=settings.timeout,
            headers=added,
            truncation_alarm=settings.truncation_alarm,
            media_hosts=MediaHosts(frozenset(map(read_host, settings.allowed_media_hosts))),
        )
    else:
        upstream = OpenAIUpstream(
            name,
            settings.base_url or "",
            context.transport,
            key=key,
            timeout=settings.timeout,
            connect_timeout=settings.connect_timeout,
            forwards_documents=settings.forwards_documents,
            headers=HeaderRules(
                None if settings.request_headers is None else allow_list(settings.request_headers),
                None if settings.response_headers is None else allow_list(settings.response_headers),
                added,
                ANTHROPIC_VERSION if is_anthropic else (),
                x_api_key if is_anthropic else bearer,
            ),
            truncation_alarm=settings.truncation_alarm,
            provider=settings.dialect,
            ollama_url=settings.ollama_url,
        )
    limits = settings.limits
    return LimitedUpstream(upstream, limits) if limits.max_concurrent or limits.per_minute else upstream


def _client(
    context: BuildContext,
    upstream: Upstream,
    limits: Limits,
    meter: Meter,
    headers: Headers = (),
    target: str = "/chat/completions",
    operation: str = "chat",
) -> ModelClient:
    """Return the parameters of calls to a model at its upstream."""
    telemetry = context.telemetry
    return ModelClient(
        upstream.name, upstream.send, target, limits, meter, headers, telemetry, upstream.provider, operation
    )


def _service_client(
    context: BuildContext, name: str, url: str, variable: str | None, setting: str
) -> Callable[[Limits, Meter], ModelClient]:
    """Return the clients of an external service that estimates probabilities. Raises ConfigError without its key."""
    key = context.secret(variable, setting) if variable else None
    upstream = OpenAIUpstream(name, url, context.transport, key=key, provider="custom")
    return lambda limits, meter: _client(context, upstream, limits, meter, target="", operation="estimate")


def build_language_judges(context: BuildContext, router: Router) -> LanguageJudges | None:
    """Return the factory of the judging language model; None if the judge is an encoder or off.

    Raises ConfigError when no upstream serves the model, or a profile or a secret is missing.
    """
    judge = context.settings.judge
    if not judge.is_language:
        return None
    open_: OpenJudge
    if judge.by == "external":
        service = _service_client(context, "judge", judge.url or "", judge.key_env, "judge.key_env")
        open_ = lambda _, limits, meter: ServiceJudge(service(limits, meter))  # noqa: E731
    else:
        open_ = _chat_judge(context, router)
    batch_size, at_once = context.settings.information_budget.batch_size, asyncio.Semaphore(judge.max_concurrent)
    return LanguageJudges(open_, judge.timeout, at_once, batch_size, judge.max_chars, judge.by == "self")


def _chat_judge(context: BuildContext, router: Router) -> OpenJudge:
    judge, forms = context.settings.judge, LRUCache[str, int](_MAX_MODELS)
    if judge.by != "self":
        try:
            router.choose(judge.by)
        except UnknownModel as error:
            raise ConfigError([f"judge.by: {error}"]) from error
    if judge.profile is not None:
        find_prompt_profile(judge.by, judge.profile)

    def open_(caller: Caller, limits: Limits, meter: Meter) -> LanguageJudge:
        route = router.choose(caller.model if judge.by == "self" else judge.by)
        client = _client(context, route.upstream, limits, meter, _credentials(route, caller, router))
        profile = find_prompt_profile(route.model, judge.profile)
        return ChatJudge(client, route.model, profile, forms, has_logprobs=route.upstream.has_logprobs)

    return open_


def _credentials(route: Route, caller: Caller, router: Router) -> Headers:
    """Return the client's credentials, if its own request goes to the same upstream."""
    try:
        is_same = bool(caller.model) and router.choose(caller.model).upstream is route.upstream
    except UnknownModel:
        is_same = False
    return caller.credentials if is_same else ()


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
    context: BuildContext, router: Router, workers: Workers, judge: Judge, estimates: Cache[Estimate]
) -> Estimators:
    """Build every backend that estimates probabilities, and assign one to each operation.

    Raises ConfigError when a secret is missing.
    """
    budget, policy = context.settings.information_budget, context.settings.policy

    def chat(route: Route, limits: Limits, meter: Meter, headers: Headers = ()) -> Backend:
        client = _client(context, route.upstream, limits, meter, headers)
        estimator = ChatEstimator(client, route.model, has_logprobs=route.upstream.has_logprobs)
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
    if "memory_gate" not in checker.estimators.operations:
        return None
    policy = GatePolicy(budget.memory_gate.min_confidence, budget.memory_gate.reject_unsupported)
    return Memory(checker, facts, policy, budget.timeout, telemetry=context.telemetry)


def build_auditor(context: BuildContext, checker: ClaimChecker, router: Router) -> Auditor:
    """Build the trace auditor, with a model that derives answers if its backend is one."""
    budget, estimators = context.settings.information_budget, checker.estimators
    backend = estimators.operations.get("trace_auditing", "local")

    def executor(caller: Caller, seconds: float) -> ChatExecutor:
        route = router.choose(caller.model if backend == "self" else budget.backend.haiku_model)
        limits = Limits(1, estimators.at_once, asyncio.get_running_loop().time() + seconds)
        headers = caller.credentials if backend == "self" else ()
        return ChatExecutor(_client(context, route.upstream, limits, Meter(), headers), route.model)

    derives = executor if backend in ("self", "haiku") else None
    return Auditor(checker, budget.timeout, budget.trace_auditing.check_post_hoc, derives)
