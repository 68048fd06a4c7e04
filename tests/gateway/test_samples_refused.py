"""Samples that a request asks for and does not get."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from groundwire.config.grounding import Sampling
from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import read_request
from groundwire.gateway.repeat import MAX_REPEATED, Sampler
from groundwire.judge import Judge
from groundwire.offload import Workers
from groundwire.policy import Policy
from groundwire.report import Report, SelfConsistency
from groundwire.telemetry import Telemetry
from groundwire.upstream.http import HttpxClient
from groundwire.upstream.router import Route
from groundwire.upstream.upstream import OpenAIUpstream
from groundwire.wire import Call


@pytest.mark.parametrize(
    ("size", "on_request", "reason"),
    [(10, False, "not_allowed"), (MAX_REPEATED, True, "too_large"), (MAX_REPEATED, False, "too_large")],
)
def test_the_reason_is_reported_and_no_model_is_called(size: int, on_request: bool, reason: str) -> None:
    asked: list[httpx.Request] = []
    transport = httpx.MockTransport(lambda request: asked.append(request) or httpx.Response(500))
    route = Route(OpenAIUpstream("up", "http://up/v1", HttpxClient(transport)), "m")
    raw = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * size}], "grounding": {"samples": 3}})

    async def sampled() -> SelfConsistency:
        workers = Workers(1, 4)
        sampler = Sampler(Telemetry(), workers, Policy(), Judge(), Sampling(on_request=on_request, timeout=5.0))
        session = sampler.begin(read_request(CHAT, raw.encode(), {}), route, Call("POST", "", (), raw.encode()))
        assert session is not None
        found = await session.complete(Report("gw-1", "complete", "grounded"))
        workers.close()
        return found

    found = asyncio.run(sampled())
    assert (found.status, found.reasons, asked) == ("failed", (reason,), [])
