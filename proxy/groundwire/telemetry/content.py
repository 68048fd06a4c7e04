"""Prompts and answers in the form of the GenAI conventions, for spans if content is captured.

The format is that of `gen_ai.input.messages` and `gen_ai.output.messages`: roles with parts, as JSON text. Content
other than text and tool calls is represented by its type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from groundwire.domain import Choice


def short_hash(text: str) -> str:
    """Return the first 12 hexadecimal digits of a text's SHA-256, which identify it without showing it."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def asked(body: Mapping[str, Any]) -> str | None:
    """Return the messages of a request in any dialect; None if there are none."""
    messages = [*_said("system", body.get("system")), *_said("system", body.get("instructions"))]
    for field in ("messages", "input", "prompt"):
        messages += _messages(body.get(field))
    return json.dumps(messages, ensure_ascii=False) if messages else None


def answered(choices: Sequence[Choice]) -> str:
    """Return the messages of an answer."""
    return json.dumps(
        [
            {
                "role": "assistant",
                "parts": [{"type": "text", "content": choice.text}],
                "finish_reason": choice.finish_reason or "",
            }
            for choice in choices
        ],
        ensure_ascii=False,
    )


def _messages(given: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(given, str):
        yield from _said("user", given)
    for message in given if isinstance(given, list) else ():
        if isinstance(message, Mapping):
            yield {
                "role": str(message.get("role", "user")),
                "parts": [*_parts(message.get("content")), *_calls(message)],
            }
        else:
            yield from _said("user", message)


def _said(role: str, content: Any) -> Iterator[Mapping[str, Any]]:
    parts = list(_parts(content))
    if parts:
        yield {"role": role, "parts": parts}


def _parts(content: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str) and content:
        yield {"type": "text", "content": content}
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            yield {"type": "text", "content": part}
        elif isinstance(part, Mapping):
            text = part.get("text")
            yield {"type": "text", "content": text} if isinstance(text, str) else {"type": str(part.get("type"))}


def _calls(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield {
                "type": "tool_call",
                "id": call.get("id"),
                "name": function.get("name"),
                "arguments": function.get("arguments"),
            }
