"""A demo model server: real HTTP and SSE in OpenAI's dialect, but no model, only the fixed answers of the scenarios."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from groundwire.demo.scenarios import SCENARIOS

MODEL = "groundwire-demo"
_UNKNOWN = "I am the demo model of Groundwire and know three answers only; this is none of them."
_HEAD = {"id": "chatcmpl-demo", "created": 1_750_000_000, "model": MODEL}


def build_model(pace: float = 0.01) -> Starlette:
    """Build the demo model server; `pace` is the delay in seconds after each word of a stream."""

    async def complete(request: Request) -> Response:
        asked = await request.json()
        answer = _answer(asked.get("messages", []))
        if asked.get("stream"):
            return StreamingResponse(_events(answer, pace), media_type="text/event-stream")
        message = {"role": "assistant", "content": answer}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return JSONResponse({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _usage(answer)})

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "groundwire"}]})

    return Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"]), Route("/v1/models", models)])


def _answer(messages: list[dict[str, Any]]) -> str:
    asked = [message for message in messages if message.get("role") == "user"]
    last = asked[-1].get("content") if asked else None
    for scenario in SCENARIOS:
        if any(message["role"] == "user" and message["content"] == last for message in scenario.messages):
            return scenario.answer
    return _UNKNOWN


async def _events(answer: str, pace: float) -> AsyncIterator[str]:
    yield _event({"role": "assistant", "content": ""}, None)
    for word in re.findall(r"\S+\s*", answer):
        yield _event({"content": word}, None)
        await asyncio.sleep(pace)
    yield _event({}, "stop")
    yield "data: [DONE]\n\n"


def _event(delta: dict[str, str], finish_reason: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return f"data: {json.dumps({**_HEAD, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"


def _usage(answer: str) -> dict[str, int]:
    words = len(answer.split())
    return {"prompt_tokens": 0, "completion_tokens": words, "total_tokens": words}
