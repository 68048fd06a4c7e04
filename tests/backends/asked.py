"""Estimators over real sockets for the tests: claims, a context, and a way to ask a server of known beliefs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from groundwire.backends.estimators import ChatEstimator, ServiceEstimator
from groundwire.backends.model_client import Limits, Meter, ModelClient
from groundwire.domain import Claim, Source
from groundwire.upstream.http import AiohttpClient
from groundwire.upstream.upstream import OpenAIUpstream
from tests.servers.believer import Believer

T = TypeVar("T")

TEXT = "Revenue was $4.2 million in 2023. Profit did not rise that year. The board met in Oslo."
CONTEXT = (Source("s1", "source", TEXT), Source("s2", "document", "It rained in May.", title="Weather"))


def claim(text: str, lead: str = "") -> Claim:
    return Claim("c1", text, 0, len(text), lead=lead)


STATED_CLAIM = claim("Revenue was $4.2 million in 2023.")
DENIED_CLAIM = claim("Profit did rise that year.")
SILENT_CLAIM = claim("Costs doubled in 2023.")
CLAIMS = (STATED_CLAIM, DENIED_CLAIM, SILENT_CLAIM)


def asking(base_url: str, work: Callable[[ModelClient], Awaitable[T]], target: str, **limits: Any) -> tuple[T, Meter]:
    """Return the result and cost of `work` with a server to ask. Limits: batch_size, at_once, timeout (seconds)."""

    async def run() -> tuple[T, Meter]:
        upstream, meter = OpenAIUpstream("up", base_url, AiohttpClient()), Meter()
        until = asyncio.get_running_loop().time() + limits.get("timeout", 20.0)
        at_once = asyncio.Semaphore(limits.get("at_once", 8))
        bounds = Limits(limits.get("batch_size", 8), at_once, until)
        try:
            return await work(ModelClient("up", upstream.send, target, bounds, meter)), meter
        finally:
            await upstream.aclose()

    return asyncio.run(run())


def chatting(
    believer: Believer, work: Callable[[ChatEstimator], Awaitable[T]], *, has_logprobs: bool = True, **limits: Any
) -> tuple[T, Meter]:
    """Return the result and cost of `work` with a chat estimator over a server of known beliefs."""
    return asking(
        believer.base_url,
        lambda ask: work(ChatEstimator(ask, "m", has_logprobs=has_logprobs)),
        "/chat/completions",
        **limits,
    )


def serving(base_url: str, work: Callable[[ServiceEstimator], Awaitable[T]], **limits: Any) -> tuple[T, Meter]:
    """Return the result and cost of `work` with an external service."""
    return asking(base_url, lambda ask: work(ServiceEstimator(ask)), "", **limits)
