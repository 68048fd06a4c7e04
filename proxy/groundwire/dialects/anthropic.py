"""Anthropic's Messages API.

A choice is a run of consecutive text blocks, because a sentence with citations is sent in several of them. Its index is
that of its first block in `content`; each tool call is a choice as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from groundwire.dialects.dialect import (
    Body,
    ChoiceDelta,
    Dialect,
    Fault,
    ParsedEvent,
    Side,
    dicts,
    index_of,
    member,
    read_message,
    read_parts,
    string,
    unread_in,
    unread_parts,
)
from groundwire.dialects.framing import NAMED_SSE
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Choice, Message, Part

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class _Messages(Dialect):
    name = "messages"
    path = "/v1/messages"
    framing = NAMED_SSE

    def messages(self, body: Body) -> tuple[Message, ...]:
        """Return the system prompt and the messages, with consecutive indices.

        Tool output in an assistant turn becomes a tool message with the same index.
        """
        system = tuple(read_parts(body.get("system")))
        found = [Message(0, "system", system)] if system else []
        for index, message in enumerate(dicts(body.get("messages")), start=len(found)):
            if (parsed := read_message(index, message)) is not None:
                found += _by_speaker(parsed)
        return tuple(found)

    def unread(self, body: Body) -> tuple[str, ...]:
        parts = unread_parts(body.get("messages")) + unread_in(body.get("system"))
        warnings = [f"messages: {parts} parts without text (images, PDFs, files by id) were not read"] if parts else []
        if names := [string(tool.get("name")) or "one" for tool in dicts(body.get("tools")) if _runs_there(tool)]:
            warnings.append(
                f"tools: results of server tools ({', '.join(names)}) are read only if the answer contains them"
            )
        if body.get("mcp_servers"):
            warnings.append("mcp_servers: results of their tools are read only if the answer contains them")
        return tuple(warnings)

    def schema(self, body: Body) -> Body | None:
        places = (member(body.get("output_config"), "format"), member(body, "output_format"))
        return next((schema for place in places if isinstance(schema := place.get("schema"), dict)), None)

    def resampled(self, body: Body, temperature: float) -> Body | None:
        """Return the same request without streaming; None if it enables thinking, which excludes a temperature."""
        if string(member(body, "thinking").get("type")) in ("enabled", "adaptive"):
            return None
        return self._again(body, temperature=min(temperature, 1.0))

    def parse_event(self, event: Body) -> ParsedEvent:
        match event.get("type"):
            case "content_block_delta":
                return ParsedEvent([(index_of(event, 0), _delta(member(event, "delta")))])
            case "content_block_start":
                block = member(event, "content_block")
                return ParsedEvent(list(_block(index_of(event, 0), block, starts=True)), given=_given([block]))
            case "message_start":
                message = member(event, "message")
                return ParsedEvent((), message, _usage(message))
            case "message_delta":
                return ParsedEvent((), None, _usage(event), _reason(member(event, "delta")))
            case "message":
                blocks = dicts(event.get("content"))
                pieces = [piece for index, block in enumerate(blocks) for piece in _block(index, block)]
                return ParsedEvent(pieces, event, _usage(event), _reason(event), _given(blocks))
            case _:
                return ParsedEvent()

    def choices(self, choices: Sequence[Choice]) -> Sequence[Choice]:
        """Join consecutive text blocks into one choice; drop empty blocks, except the first if all are empty."""
        joined: list[Choice] = []
        end = -1
        for block in choices:
            if joined and block.text and joined[-1].text and block.index == end:
                before = joined[-1]
                joined[-1] = replace(before, text=before.text + block.text, unread=before.unread + block.unread)
            elif block.text or block.arguments:
                joined.append(block)
            end = block.index + 1 if block.text else -1
        return joined or choices[:1]

    def carrier_side(self, event: Body, request: Body) -> Side | None:
        """Take the event with the stop reason for the last: clients ignore the content of `message_stop`."""
        return "before" if event.get("type") == "message_delta" else None

    def own_event(self, head: Body) -> Body:
        return {"type": "grounding"}

    def error(self, fault: Fault) -> Body:
        """Render an error as a body or an event; its type follows from its status."""
        otherwise = "api_error" if fault.status >= 500 else "invalid_request_error"
        return {"type": "error", "error": {"type": _ERRORS.get(fault.status, otherwise), "message": fault.message}}


def _by_speaker(message: Message) -> Iterator[Message]:
    """Split an assistant message into its text and the output of tools that ran at the model server."""
    given = tuple(part for part in message.parts if part.kind != "text")
    if message.role != "assistant" or not given:
        yield message
        return
    yield replace(message, parts=tuple(part for part in message.parts if part.kind == "text"))
    yield Message(message.index, "tool", given)


def _runs_there(tool: Body) -> bool:
    """Return whether a tool runs at the model server; types such as `bash_…` run at the client."""
    return string(tool.get("type")).startswith(("web_search", "web_fetch", "code_execution", "mcp_toolset"))


def _given(blocks: Sequence[Body]) -> list[Part]:
    """Return the tool output of a message: all parts except its text."""
    return [part for part in read_parts(blocks) if part.kind != "text"]


def _delta(delta: Body) -> ChoiceDelta:
    match delta.get("type"):
        case "text_delta":
            return ChoiceDelta(string(delta.get("text")))
        case "input_json_delta":
            return ChoiceDelta(arguments={0: string(delta.get("partial_json"))})
        case _:
            return ChoiceDelta()


def _block(index: int, block: Body, *, starts: bool = False) -> Iterator[tuple[int, ChoiceDelta]]:
    """Parse a content block; if it `starts` a series of deltas, the input of a tool call is not known yet."""
    if block.get("type") == "text":
        yield index, ChoiceDelta(string(block.get("text")))
    elif string(block.get("type")) in _CALLS:
        yield index, ChoiceDelta(arguments={0: "" if starts else dumps(block.get("input")).decode()})


def _usage(body: Body) -> Body | None:
    """Return the token counts under the names of chat completions.

    Anthropic counts cached prompt tokens separately; `prompt_tokens` is the sum.
    """
    usage = member(body, "usage")
    read = [usage[name] for name in _READ if isinstance(usage.get(name), int)]
    output = usage.get("output_tokens")
    cached = usage.get("cache_read_input_tokens")
    prompt = {"prompt_tokens": sum(read)} if any(read) else {}
    details = {"prompt_tokens_details": {"cached_tokens": cached}} if prompt and isinstance(cached, int) else {}
    return prompt | details | ({"completion_tokens": output} if isinstance(output, int) else {}) or None


def _reason(body: Body) -> str | None:
    reason = body.get("stop_reason")
    return _REASONS.get(reason, reason) if isinstance(reason, str) and reason else None


MESSAGES = _Messages()
