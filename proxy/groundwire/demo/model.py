"""A demo model server: real HTTP and SSE in the dialects of OpenAI and Anthropic, but no model, only fixed answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from groundwire.demo.scenarios import SCENARIOS

MODEL = "groundwire-demo"
_UNKNOWN = "I am the demo model of Groundwire and know three answers only; this is none of them."
_HEAD = {"id": "chatcmpl-demo", "created": 1_750_000_000, "model": MODEL}
_MESSAGE = {"id": "msg_demo", "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None}
_RESULTS = ("tool_result", "tool")  # the type of a part, or the role of a message, with the result of a tool

JSON = Mapping[str, Any]


def build_model(pace: float = 0.01) -> Starlette:
    """Build the demo model server; `pace` is the delay in seconds after each word of a stream."""

    async def chat(request: Request) -> Response:
        asked = await request.json()
        reply = _reply(asked)
        if asked.get("stream"):
            return _stream((_chat_event(*each) for each in _chat_deltas(reply)), pace, end="data: [DONE]\n\n")
        choice = {"index": 0, "message": {"role": "assistant", **reply}, "finish_reason": _finish(reply)}
        usage = {"prompt_tokens": 0, "completion_tokens": _words(reply), "total_tokens": _words(reply)}
        return JSONResponse({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": usage})

    async def messages(request: Request) -> Response:
        asked = await request.json()
        reply = _reply(asked)
        if asked.get("stream"):
            return _stream(map(_named_event, _message_events(reply)), pace)
        ended = {"content": [_block(reply)], "stop_reason": _stop_reason(reply)}
        return JSONResponse({**_MESSAGE, **ended, "usage": {"input_tokens": 0, "output_tokens": _words(reply)}})

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "groundwire"}]})

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/messages", messages, methods=["POST"]),
            Route("/v1/models", models),
        ]
    )


def _reply(asked: JSON) -> JSON:
    """Return the answer to the last question, or the call of a tool that it needs, as an OpenAI message."""
    messages = asked.get("messages", [])
    question = next((text for each in reversed(messages) if each["role"] == "user" and (text := _text(each))), None)
    for scenario in SCENARIOS:
        if all(each["role"] != "user" or each["content"] != question for each in scenario.messages):
            continue
        calls = [call for each in scenario.messages for call in each.get("tool_calls", ())]
        if calls and asked.get("tools") and not any(map(_has_result, messages)):
            return {"content": None, "tool_calls": calls}
        return {"content": scenario.answer}
    return {"content": _UNKNOWN}


def _text(message: JSON) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _has_result(message: JSON) -> bool:
    parts: Sequence[Any] = message["content"] if isinstance(message.get("content"), list) else ()
    return message["role"] in _RESULTS or any(part.get("type") in _RESULTS for part in parts)


def _words(reply: JSON) -> int:
    return len((reply["content"] or "").split())


def _pieces(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)


def _stream(events: Iterator[str], pace: float, end: str = "") -> Response:
    async def paced() -> AsyncIterator[str]:
        for event in events:
            yield event
            await asyncio.sleep(pace)
        yield end

    return StreamingResponse(paced(), media_type="text/event-stream")


# --- OpenAI's chat completions ----------------------------------------------------------------------------------------


def _finish(reply: JSON) -> str:
    return "tool_calls" if "tool_calls" in reply else "stop"


def _chat_deltas(reply: JSON) -> Iterator[tuple[JSON, str | None]]:
    yield {"role": "assistant", "content": ""}, None
    for word in _pieces(reply["content"] or ""):
        yield {"content": word}, None
    for index, call in enumerate(reply.get("tool_calls", ())):
        yield {"tool_calls": [{"index": index, **call}]}, None
    yield {}, _finish(reply)


def _chat_event(delta: JSON, finish_reason: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return f"data: {json.dumps({**_HEAD, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"


# --- Anthropic's messages ---------------------------------------------------------------------------------------------


def _stop_reason(reply: JSON) -> str:
    return "tool_use" if "tool_calls" in reply else "end_turn"


def _block(reply: JSON) -> dict[str, Any]:
    """Return the content of an answer: its text, or the call of a tool."""
    for call in reply.get("tool_calls", ()):
        function = call["function"]
        return {
            "type": "tool_use",
            "id": call["id"],
            "name": function["name"],
            "input": json.loads(function["arguments"]),
        }
    return {"type": "text", "text": reply["content"]}


def _message_events(reply: JSON) -> Iterator[JSON]:
    usage = {"input_tokens": 0, "output_tokens": 0}
    yield {"type": "message_start", "message": {**_MESSAGE, "content": [], "stop_reason": None, "usage": usage}}
    block, empty = _block(reply), dict[str, Any]()
    if block["type"] == "text":
        empty, deltas = {"text": ""}, [{"type": "text_delta", "text": word} for word in _pieces(block["text"])]
    else:
        empty, deltas = {"input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    yield {"type": "content_block_start", "index": 0, "content_block": {**block, **empty}}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": _words(reply)}}
    yield {"type": "message_stop"}


def _named_event(event: JSON) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
