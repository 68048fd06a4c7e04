"""Answers as OpenAI's Responses and Anthropic's Messages have them, whole and streamed, as their servers send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.edge.upstream import as_json, pieces

Item = Mapping[str, Any]


def text_item(text: str, number: int = 0) -> Item:
    """A message of a response."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": f"msg_{number}", "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def call_item(arguments: str, name: str = "lookup") -> Item:
    """A response's call of a function."""
    ids = {"id": "fc_1", "type": "function_call", "call_id": "call_1"}
    return {**ids, "status": "completed", "name": name, "arguments": arguments}


def reasoning_item(summary: str) -> Item:
    """A response's reasoning."""
    return {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": summary}]}


def response(*items: Item, status: str = "completed", reason: str | None = None) -> dict[str, Any]:
    """A whole response."""
    usage = {
        "input_tokens": 40,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 52,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1764000000,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-4o-mini-2024-07-18",
        "output": list(items),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage if status != "queued" else None,
    }


def response_events(*items: Item, status: str = "completed", reason: str | None = None) -> tuple[bytes, ...]:
    """The same as a stream, from `response.created` to its last event."""
    begun = response(status="in_progress") | {"usage": None}
    said: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for at, item in enumerate(items):
        said += _item_events(at, item)
    said.append({"type": f"response.{status}", "response": response(*items, status=status, reason=reason)})
    return tuple(named_event(event | {"sequence_number": number}) for number, event in enumerate(said))


def _item_events(at: int, item: Item) -> list[dict[str, Any]]:
    place = {"output_index": at, "item_id": item["id"]}
    opened = {**item, "status": "in_progress"} | ({"content": []} if item["type"] == "message" else {})
    opened |= {"arguments": ""} if item["type"] == "function_call" else {}
    said: list[dict[str, Any]] = [{"type": "response.output_item.added", "output_index": at, "item": opened}]
    if item["type"] == "message":
        for index, part in enumerate(item["content"]):
            here = place | {"content_index": index}
            said.append({"type": "response.content_part.added", **here, "part": part | {"text": ""}})
            delta = {"type": "response.output_text.delta", **here, "logprobs": []}
            said += [delta | {"delta": piece} for piece in pieces(part["text"])]
            said.append({"type": "response.output_text.done", **here, "text": part["text"], "logprobs": []})
            said.append({"type": "response.content_part.done", **here, "part": part})
    if item["type"] == "function_call":
        delta = {"type": "response.function_call_arguments.delta", **place}
        said += [delta | {"delta": piece} for piece in pieces(item["arguments"])]
        done = {"type": "response.function_call_arguments.done", "arguments": item["arguments"], "name": item["name"]}
        said.append({**done, **place})
    return [*said, {"type": "response.output_item.done", "output_index": at, "item": dict(item)}]


def text_block(text: str) -> Item:
    """A block of text of a message."""
    return {"type": "text", "text": text}


def thinking_block(text: str) -> Item:
    """A message's thinking."""
    return {"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}


def call_block(**given: Any) -> Item:
    """A message's call of a tool."""
    return {"type": "tool_use", "id": "toolu_1", "name": "lookup", "input": given}


def message(*blocks: Item, stop_reason: str = "end_turn") -> dict[str, Any]:
    """A whole message."""
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": list(blocks),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 40, "output_tokens": 12},
    }


def message_events(*blocks: Item, stop_reason: str = "end_turn") -> tuple[bytes, ...]:
    """The same as a stream, from `message_start` to `message_stop`."""
    begun = message() | {"stop_reason": None, "usage": {"input_tokens": 40, "output_tokens": 1}}
    said: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for at, block in enumerate(blocks):
        said += _block_events(at, block)
        said += [{"type": "ping"}] if at == 0 else []
    ended = {"stop_reason": stop_reason, "stop_sequence": None}
    said.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 12}})
    return tuple(named_event(event) for event in [*said, {"type": "message_stop"}])


def _block_events(at: int, block: Item) -> list[dict[str, Any]]:
    if block["type"] == "text":
        opened: Item = {"type": "text", "text": ""}
        deltas: Sequence[Item] = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    elif block["type"] == "thinking":
        opened = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
    elif "input" not in block:
        opened, deltas = block, ()
    else:
        opened = {**block, "input": {}}
        given = as_json(block["input"]).decode()
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(given))]
    return [
        {"type": "content_block_start", "index": at, "content_block": dict(opened)},
        *({"type": "content_block_delta", "index": at, "delta": dict(delta)} for delta in deltas),
        {"type": "content_block_stop", "index": at},
    ]


def named_event(value: Mapping[str, Any]) -> bytes:
    """One server-sent event that is named after its type."""
    return b"event: %b\ndata: %b\n\n" % (str(value["type"]).encode(), as_json(value))
