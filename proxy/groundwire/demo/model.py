"""A demo model server: real HTTP and SSE in the dialects of OpenAI and Anthropic, but no model, only fixed answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route


@dataclass(frozen=True, slots=True)
class Scenario:
    """One request, the demo model's answer, and a hint for reading the report."""

    title: str
    look_for: str
    messages: Sequence[Mapping[str, Any]]
    answer: str
    stream: bool = False


_HANDBOOK = """\
Answer the question from the documents and cite them like [1].

<document id="1" title="Travel policy 2025">
Employees may book economy class on flights of less than six hours. Premium economy is allowed on longer flights.
Hotel costs are reimbursed up to 180 euros per night. Receipts must be handed in within 30 days of the trip.
</document>
<document id="2" title="Remote work">
Employees may work from abroad for at most 20 days per calendar year. A request must be approved by the line manager
at least two weeks before departure.
</document>
"""

_REPORT = """\
Use the following pieces of context to answer the question at the end. If you don't know the answer, say so.

Northwind Turbines, annual report 2024

| EUR million     | 2024  | 2023  |
|-----------------|-------|-------|
| Revenue         | 412.6 | 371.8 |
| Operating costs | 338.1 | 329.4 |
| Operating profit| 74.5  | 42.4  |

The number of employees rose from 1,180 to 1,312. "We sold more turbines in Spain than in any year before," said the
chief executive, Ines Duarte. The board proposes a dividend of 0.85 euros per share.

Question: How did 2024 go for Northwind Turbines?
Helpful Answer:"""

_TICKET = """\
{"ticket": {"id": 48213, "status": "open", "priority": "high", "opened": "2025-03-04",
 "customer": {"name": "Harbour Clinic", "plan": "Business", "seats": 240},
 "history": [{"date": "2025-03-04", "note": "Backups fail every night since the update to version 7.2."},
             {"date": "2025-03-05", "note": "Support reproduced the failure and passed it to engineering."}]}}"""

SCENARIOS = (
    Scenario(
        title="A handbook question, not streamed",
        look_for="every claim is supported, and each [n] resolves to its document",
        messages=[
            {"role": "system", "content": _HANDBOOK},
            {"role": "user", "content": "How long may I work from abroad, and what does the company pay for a hotel?"},
        ],
        answer=(
            "You may work from abroad for at most 20 days per calendar year [2]. Your line manager must approve the "
            "request at least two weeks before you leave [2]. Hotels are reimbursed up to 180 euros per night [1]."
        ),
    ),
    Scenario(
        title="An annual report, streamed",
        look_for=(
            "a wrong number, a made-up quotation, and a growth rate that follows from the table; the verdict came with "
            "the last event, before [DONE]"
        ),
        messages=[{"role": "user", "content": _REPORT}],
        answer=(
            "Revenue grew by 11% to 412.6 million euros. Operating profit rose to "
            "84.5 million euros. The company now has 1,312 employees. The chief executive, Ines Duarte, said: "
            '"This was the best year in the history of our company." The board proposes a dividend of 0.85 euros per '
            "share."
        ),
        stream=True,
    ),
    Scenario(
        title="A tool result in JSON, not streamed",
        look_for="a status that the tool result contradicts, and a statement that it does not mention",
        messages=[
            {"role": "user", "content": "What is going on with ticket 48213?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get_ticket", "arguments": '{"id": 48213}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": _TICKET},
        ],
        answer=(
            "Harbour Clinic, on the Business plan with 240 seats, reported that backups fail every night since the "
            "update to version 7.2. Support reproduced the failure on 5 March 2025. The ticket has low priority. "
            "Engineering expects to ship a fix next week."
        ),
    ),
)


MODEL = "groundwire-demo"
EXAMPLES: Mapping[str, str] = {
    "How did we do in 2023?": "Revenue was $4.2M in 2023 [1]. Profit rose to $900K.",
    "What is known about Acme Corp?": "Acme Corp was founded in Oslo in 1998. Its revenue was $4.9 million in 2023.",
}
"""Answers to the questions of the README and the quickstart, each half right."""

_UNKNOWN = "I cannot answer that. I am a demo model and know the questions of the README and the quickstart only."
_HEAD = {"id": "chatcmpl-demo", "created": 1_750_000_000, "model": MODEL}
_MESSAGE = {"id": "msg_demo", "type": "message", "role": "assistant", "model": MODEL, "stop_sequence": None}
_RESULTS = ("tool_result", "tool")  # the type of a part, or the role of a message, with the result of a tool

JSON = Mapping[str, Any]


def build_model(pace: float = 0.01) -> Starlette:
    """Build the demo model server; `pace` is the delay in seconds after each word of a stream."""

    async def chat(request: Request) -> Response:
        body = await request.json()
        reply = _reply(body)
        if body.get("stream"):
            return _stream(_chat_events(reply), pace, end="data: [DONE]\n\n")
        choice = {"index": 0, "message": {"role": "assistant", **reply}, "finish_reason": _finish(reply)}
        usage = {"prompt_tokens": 0, "completion_tokens": _words(reply), "total_tokens": _words(reply)}
        return JSONResponse({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": usage})

    async def messages(request: Request) -> Response:
        body = await request.json()
        reply = _reply(body)
        if body.get("stream"):
            events = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in _message_events(reply))
            return _stream(events, pace)
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


def _reply(body: JSON) -> JSON:
    """Return the answer to the last question, or the call of a tool that it needs, as an OpenAI message."""
    messages = body.get("messages", [])
    question = next((text for each in reversed(messages) if each["role"] == "user" and (text := _text(each))), None)
    for scenario in SCENARIOS:
        if all(each["role"] != "user" or each["content"] != question for each in scenario.messages):
            continue
        calls = [call for each in scenario.messages for call in each.get("tool_calls", ())]
        if calls and body.get("tools") and not any(map(_has_result, messages)):
            return {"content": None, "tool_calls": calls}
        return {"content": scenario.answer}
    return {"content": EXAMPLES.get(question or "", _UNKNOWN)}


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


def _chat_events(reply: JSON) -> Iterator[str]:
    deltas: list[JSON] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in _pieces(reply["content"] or "")]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(reply.get("tool_calls", ()))]
    for delta in [*deltas, {}]:
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else _finish(reply)}
        yield f"data: {json.dumps({**_HEAD, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"


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
