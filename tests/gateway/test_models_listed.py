"""The models of several upstreams in one list."""

from __future__ import annotations

import asyncio
import json

import httpx

from groundwire.gateway.forward import PassThrough
from groundwire.telemetry import Telemetry
from groundwire.upstream.http import HttpxClient
from groundwire.upstream.router import Router, UpstreamModels
from groundwire.upstream.upstream import OpenAIUpstream
from groundwire.wire import Call


def models(name: str, *ids: str) -> UpstreamModels:
    listed = {"data": [{"id": each, "owned_by": name} for each in ids]}
    client = HttpxClient(httpx.MockTransport(lambda _: httpx.Response(200, json=listed)))
    return UpstreamModels(OpenAIUpstream(name, f"http://{name}/v1", client), ["*"])


def test_each_model_is_listed_once_in_the_order_of_the_upstreams() -> None:
    passage = PassThrough(Router([models("one", "a", "b"), models("two", "a", "c")]), Telemetry())
    reply = asyncio.run(passage.models(Call("GET", "/models", (), b"")))
    assert isinstance(reply.body, bytes)
    listed = [(model["id"], model["owned_by"]) for model in json.loads(reply.body)["data"]]
    assert listed == [("a", "one"), ("b", "one"), ("c", "two")]
