"""Spans of attempts at an answer: one for each attempt, all in the one request."""

import asyncio
import json
from typing import Any

import httpx
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from groundwire.config import Settings
from groundwire.container import build_container
from groundwire.http.app import build_app
from groundwire.judge import Judge
from groundwire.telemetry import Telemetry
from groundwire.telemetry.otlp import OpenTelemetryTracer

SETTINGS = Settings.model_validate(
    {
        "upstreams": {
            "cloud": {
                "base_url": "http://cloud/v1",
                "models": ["big"],
                "retries": {"count": 1, "initial_backoff": "1ms"},
                "fallbacks": ["down/big", "local/small"],
            },
            "down": {"base_url": "http://down/v1", "models": []},
            "local": {"base_url": "http://local/v1", "models": []},
        }
    }
)
ANSWER = {"model": "small", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Blue."}}]}


def answer(request: httpx.Request) -> httpx.Response:
    if request.url.host == "cloud":
        return httpx.Response(503, stream=httpx.ByteStream(b"{}"))
    if request.url.host == "down":
        raise httpx.ConnectError("refused")
    raw = json.dumps(ANSWER).encode()
    return httpx.Response(200, headers={"content-type": "application/json"}, stream=httpx.ByteStream(raw))


def test_every_attempt_has_its_span_with_what_became_of_it() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    requests: list[httpx.Request] = []

    def noting(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return answer(request)

    async def work() -> httpx.Response:
        telemetry = Telemetry(OpenTelemetryTracer(provider.get_tracer("test")))
        house = build_container(SETTINGS, {}, transport=httpx.MockTransport(noting), telemetry=telemetry, judge=Judge())
        transport = httpx.ASGITransport(build_app(SETTINGS, house))
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            asked: dict[str, Any] = {"model": "big", "messages": [{"role": "user", "content": "Sky?"}]}
            response = await client.post("/v1/chat/completions", json=asked)
            await house.close()
        return response

    assert asyncio.run(work()).json()["model"] == "small"
    spans = {span.name: span for span in exporter.get_finished_spans()}
    calls = [span for span in exporter.get_finished_spans() if span.name.startswith("chat ")]
    told = [
        (
            span.attributes["grounding.upstream"],
            span.attributes["gen_ai.request.model"],
            span.attributes.get("error.type"),
        )
        for span in calls
    ]
    assert told == [
        ("cloud", "big", "503"),
        ("cloud", "big", "503"),
        ("down", "big", "UpstreamUnreachable"),
        ("local", "small", None),
    ]
    assert [span.status.status_code for span in calls] == [StatusCode.ERROR] * 3 + [StatusCode.UNSET]
    server = spans["POST /v1/chat/completions"]
    assert {span.parent.span_id for span in calls} == {server.context.span_id}
    assert [request.headers["traceparent"].split("-")[2] for request in requests] == [
        f"{span.context.span_id:016x}" for span in calls
    ]
