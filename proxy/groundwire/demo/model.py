"""A demo model server: real HTTP and SSE in OpenAI's dialect, with the fixed answers of three scenarios."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
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
            "Northwind Turbines had a good year. Revenue grew by 11% to 412.6 million euros. Operating profit rose to "
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
_UNKNOWN = "I am the demo model of Groundwire and know three answers only; this is none of them."
_HEAD = {"id": "chatcmpl-demo", "created": 1_750_000_000, "model": MODEL}


def build_model(pace: float = 0.01) -> Starlette:
    """Build the demo model server; `pace` is the delay in seconds after each word of a stream."""

    async def complete(request: Request) -> Response:
        body = await request.json()
        answer = _answer(body.get("messages", []))
        if body.get("stream"):
            return StreamingResponse(_events(answer, pace), media_type="text/event-stream")
        message = {"role": "assistant", "content": answer}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return JSONResponse({**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _usage(answer)})

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "groundwire"}]})

    return Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"]), Route("/v1/models", models)])


def _answer(messages: list[dict[str, Any]]) -> str:
    questions = [message for message in messages if message.get("role") == "user"]
    last = questions[-1].get("content") if questions else None
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
