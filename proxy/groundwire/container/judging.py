"""Build the judge: an embedded encoder, or a language model with the encoder as its fallback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread

import httpx
from cachetools import LRUCache

from groundwire.backends.judge_prompts import find_prompt_profile
from groundwire.backends.language_judge import ChatJudge, LanguageJudge, ServiceJudge
from groundwire.backends.loading import load_judge
from groundwire.backends.model_client import Limits, Meter, ModelClient
from groundwire.config import Settings
from groundwire.container.context import BuildContext
from groundwire.container.upstreams import build_router
from groundwire.errors import ConfigError, UnknownModel
from groundwire.gateway.models import Caller, LanguageJudges, OpenJudge
from groundwire.judge import Judge
from groundwire.telemetry import Telemetry
from groundwire.upstream.aiohttp_client import AiohttpClient
from groundwire.upstream.http import HttpxClient
from groundwire.upstream.openai import OpenAIUpstream
from groundwire.upstream.router import Route, Router
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
    batch_size, at_once = context.settings.hallucination.batch_size, asyncio.Semaphore(judge.max_concurrent)
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
        client = _model_client(route, limits, meter, _credentials(route, caller, router), context.telemetry)
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


def _model_client(route: Route, limits: Limits, meter: Meter, headers: Headers, telemetry: Telemetry) -> ModelClient:
    upstream = route.upstream
    return ModelClient(
        upstream.name, upstream.send, "/chat/completions", limits, meter, headers, telemetry, upstream.provider
    )


def _service(context: BuildContext) -> OpenJudge:
    judge = context.settings.judge
    key = context.secret(judge.key_env, "judge.key_env") if judge.key_env else None
    upstream = OpenAIUpstream("judge", judge.url or "", context.transport, key=key)

    def open_(_: Caller, limits: Limits, meter: Meter) -> LanguageJudge:
        return ServiceJudge(
            ModelClient("judge", upstream.send, "", limits, meter, (), context.telemetry, "custom", "estimate")
        )

    return open_


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
    try:
        yield asyncio.run_coroutine_threadsafe(_blocking(judges, encoder), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(_close(context, router), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        judges.waiting.close()


async def _blocking(judges: LanguageJudges, fallback: Judge) -> Judge:
    return judges.blocking(fallback, Caller())


async def _close(context: BuildContext, router: Router) -> None:
    for upstream in router.upstreams:
        await upstream.aclose()
    await context.transport.aclose()
