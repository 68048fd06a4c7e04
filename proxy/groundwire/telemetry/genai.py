"""Requests and answers in terms of the GenAI conventions: tokens, and messages for spans that capture content.

Their format is that of `gen_ai.input.messages` and `gen_ai.output.messages`: roles with parts, as JSON text. Content
other than text and tool calls is represented by its type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from groundwire.domain import Choice


def short_hash(text: str) -> str:
    """Return the first 12 hexadecimal digits of a text's SHA-256, which identify it without showing it."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def input_messages(body: Mapping[str, Any]) -> str | None:
    """Return the messages of a request in any dialect; None if there are none."""
    messages = [*_message("system", body.get("system")), *_message("system", body.get("instructions"))]
    for field in ("messages", "input", "prompt"):
        messages += _messages(body.get(field))
    return json.dumps(messages, ensure_ascii=False) if messages else None


def output_messages(choices: Sequence[Choice]) -> str:
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
        yield from _message("user", given)
    for message in given if isinstance(given, list) else ():
        if isinstance(message, Mapping):
            yield {
                "role": str(message.get("role", "user")),
                "parts": [*_parts(message.get("content")), *_tool_calls(message)],
            }
        else:
            yield from _message("user", message)


def _message(role: str, content: Any) -> Iterator[Mapping[str, Any]]:
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


def _tool_calls(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
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


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, None if not reported; `input` includes those read from and written to a cache."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_written: int | None = None
    reasoning: int | None = None

    @staticmethod
    def of(usage: Mapping[str, Any]) -> Usage:
        """Read the `usage` of a reply. Anthropic counts cached tokens separately from the input."""
        read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
        given = _count(usage, "prompt_tokens", "input_tokens")
        prompt = _details(usage, "prompt_tokens_details", "input_tokens_details")
        completion = _details(usage, "completion_tokens_details", "output_tokens_details")
        return Usage(
            None if given is None else given + (read or 0) + (written or 0),
            _count(usage, "completion_tokens", "output_tokens"),
            _count(prompt, "cached_tokens") if prompt else read,
            written,
            _count(completion, "reasoning_tokens") if completion else None,
        )


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    """Return the count under the first of these names that is present."""
    for name in names:
        count = usage.get(name)
        if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
            return count
    return None


def _details(usage: Mapping[str, Any], *names: str) -> Mapping[str, Any] | None:
    for name in names:
        found = usage.get(name)
        if isinstance(found, Mapping):
            return found
    return None
