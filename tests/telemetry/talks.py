"""Exchanges for the tests of telemetry: the whole application in process, and a function as the model server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from groundwire.config import Settings
from groundwire.container import build_container
from groundwire.http.app import build_app
from groundwire.judge import Judge
from groundwire.telemetry import Telemetry

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
KEY = "sk-umbrella"
SECRETS = (KEY, "zanzibar", "okapi", "ledger")
ASKED = {
    "model": "m",
    "messages": [{"role": "system", "content": "The zanzibar ledger was sealed in 1881."}],
    "temperature": 0.5,
    "max_tokens": 50,
    "top_p": 0.9,
    "seed": 7,
}
ANSWER = "The zanzibar ledger was sealed in 1881. The okapi was sold in 1999."
CHAT = "/v1/chat/completions"


def body(text: str = ANSWER) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "model": "m-2024",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
    }


def stream(*, cut: bool = False) -> Iterator[bytes]:
    for piece in (ANSWER[:20], ANSWER[20:]):
        yield event({"delta": {"content": piece}, "finish_reason": None})
    if cut:
        raise httpx.ReadError("cut at upstream.internal")
    yield event({"delta": {}, "finish_reason": "stop"})
    yield b"data: [DONE]\n\n"


def event(choice: dict[str, Any]) -> bytes:
    said = {"id": "chatcmpl-1", "model": "m-2024", "choices": [{"index": 0, **choice}]}
    return b"data: " + json.dumps(said).encode() + b"\n\n"


def cut_short(raw: bytes) -> Iterator[bytes]:
    yield raw[:40]
    raise httpx.ReadError("cut at upstream.internal")


class Streamed(httpx.AsyncByteStream):
    """A body in chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> Any:
        for chunk in self._chunks:
            yield chunk


class Model:
    """A model server that records requests and answers as `ends` selects: well, with an error, cut, or not at all."""

    def __init__(self, ends: str = "well") -> None:
        self.ends = ends
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.ends == "unreachable":
            raise httpx.ConnectError("to upstream.internal")
        if self.ends == "error":
            return httpx.Response(429, stream=httpx.ByteStream(b'{"error":{"message":"okapi"}}'))
        if json.loads(request.content or b"{}").get("stream"):
            chunks = Streamed(stream(cut=self.ends == "cut"))
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=chunks)
        raw = json.dumps(body()).encode()
        whole = Streamed(cut_short(raw)) if self.ends == "cut" else httpx.ByteStream(raw)
        return httpx.Response(200, headers={"content-type": "application/json"}, stream=whole)


def exchanged(
    telemetry: Telemetry | None,
    model: Model,
    *,
    asked: Mapping[str, Any] = ASKED,
    target: str = CHAT,
    settings: Mapping[str, Any] | None = None,
    **headers: str,
) -> httpx.Response | None:
    """Run one exchange through the whole application and close it; return None when the reply broke off."""
    upstreams = {"up": {"base_url": "http://upstream.internal/v1"}}
    described = Settings.model_validate({"upstreams": upstreams, "stream": {"tail_budget": "20s"}, **(settings or {})})
    transport = httpx.MockTransport(model)
    house = build_container(described, {}, transport=transport, telemetry=telemetry, judge=Judge())

    async def work() -> httpx.Response | None:
        transport = httpx.ASGITransport(build_app(described, house), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
            try:
                return await client.post(
                    target, json=dict(asked), headers={"authorization": f"Bearer {KEY}", **headers}
                )
            except (AssertionError, httpx.HTTPError):
                return None
            finally:
                await asyncio.sleep(0.2 if model.ends == "cut" else 0)
                await house.close()

    return run(work())


@asynccontextmanager
async def serving(
    model: Callable[[httpx.Request], httpx.Response], environ: Mapping[str, str] | None = None, **sections: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Start the application with these sections of the settings, yield a client of it, and close it afterwards."""
    upstreams = {"up": {"base_url": "http://upstream.internal/v1"}}
    described = Settings.model_validate({"upstreams": upstreams, "stream": {"tail_budget": "20s"}, **sections})
    house = build_container(described, environ or {}, transport=httpx.MockTransport(model), judge=Judge())
    transport = httpx.ASGITransport(build_app(described, house, environ or {}), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proxy") as client:
        await house.start()
        try:
            yield client
        finally:
            await house.close()


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))
