"""OpenAI's APIs: chat completions, responses, and the legacy completions, which have a prompt instead of messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from typing import Any

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
    object_or_none,
    openai_error,
    read_message,
    read_parts,
    string,
    turns,
    unread_in,
    unread_parts,
)
from groundwire.dialects.framing import NAMED_SSE
from groundwire.domain import Choice, Message, Part

_LEAST = -700.0  # lower bound of log probabilities; exp() refuses integers far below


class _Chat(Dialect):
    name = "chat"
    path = "/v1/chat/completions"
    _event_object = "chat.completion.chunk"
    _not_again = frozenset({"stream", "stream_options", "n", "best_of", "grounding"})

    def unread(self, body: Body) -> tuple[str, ...]:
        unread = unread_parts(body.get("messages"))
        return (f"messages: {unread} parts without text (images, audio, other files) were not read",) if unread else ()

    def schema(self, body: Body) -> Body | None:
        return object_or_none(member(body.get("response_format"), "json_schema").get("schema"))

    def expected(self, body: Body) -> int:
        n = body.get("n")
        return n if isinstance(n, int) and n > 0 else 1

    def parse_event(self, event: Body) -> ParsedEvent:
        choices = enumerate(dicts(event.get("choices")))
        pieces = [(index_of(choice, at), self._piece(choice)) for at, choice in choices]
        return ParsedEvent(pieces, event, object_or_none(event.get("usage")))

    def _piece(self, choice: Body) -> ChoiceDelta:
        message = object_or_none(choice.get("delta") or choice.get("message")) or {}
        calls = enumerate(dicts(message.get("tool_calls")))
        return ChoiceDelta(
            string(message.get("content")),
            string(choice.get("finish_reason")) or None,
            probabilities(member(choice, "logprobs").get("content")),
            {index_of(call, at): string(member(call, "function").get("arguments")) for at, call in calls},
        )

    def carrier_side(self, event: Body, request: Body) -> Side | None:
        """Find the last event. Where usage was requested, it is the usage event, which SDKs expect at the very end."""
        if member(request, "stream_options").get("include_usage") is not True:
            return "after"
        return "before" if event.get("usage") else None

    def own_event(self, head: Body) -> Body:
        """Return an event without choices, shaped like a usage event."""
        return {**head, "object": self._event_object, "choices": []}


def probabilities(tokens: Any) -> list[float]:
    """Return the probabilities (0–1) of tokens that have a `logprob`."""
    values = (token.get("logprob") for token in dicts(tokens))
    return [exp(max(_LEAST, min(value, 0.0))) for value in values if isinstance(value, (int, float))]


class _Completions(_Chat):
    name = "text_completion"
    path = "/v1/completions"
    operation = "text_completion"
    _event_object = "text_completion"

    def messages(self, body: Body) -> tuple[Message, ...]:
        """Return the prompt as one user message, with one part per prompt of a list. Token arrays hold no text."""
        prompt = body.get("prompt")
        prompts = prompt if isinstance(prompt, list) else [prompt]
        parts = tuple(Part(text) for text in prompts if isinstance(text, str))
        return (Message(0, "user", parts),) if parts else ()

    def unread(self, body: Body) -> tuple[str, ...]:
        prompt = body.get("prompt")
        is_unread = isinstance(prompt, list) and not all(isinstance(each, str) for each in prompt)
        return ("prompt: it has tokens instead of text, which were not read",) if is_unread else ()

    def schema(self, body: Body) -> None:
        return None

    def expected(self, body: Body) -> int:
        """Return `n` times the number of prompts; a list of token numbers is one prompt."""
        prompt = body.get("prompt")
        prompts = len(prompt) if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) else 1
        return super().expected(body) * prompts

    def continued(self, body: Body, answer: str, message: str) -> None:
        return None

    def _piece(self, choice: Body) -> ChoiceDelta:
        return ChoiceDelta(string(choice.get("text")), string(choice.get("finish_reason")) or None)


_COUNTS = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
_DETAILS = {f"{theirs}_details": f"{ours}_details" for theirs, ours in _COUNTS.items()}
_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_ENDS = frozenset({"response.completed", "response.incomplete"})
_NOT_CONTEXT = frozenset(
    "message function_call custom_tool_call computer_call local_shell_call shell_call apply_patch_call reasoning "
    "mcp_list_tools mcp_approval_request mcp_approval_response web_search_call image_generation_call".split()
)
_ELSEWHERE = {
    "previous_response_id": "the earlier conversation",
    "conversation": "the earlier conversation",
    "prompt": "the stored prompt",
}
_RUN_HERE = frozenset(
    "function custom namespace local_shell shell apply_patch computer computer_use_preview computer_use".split()
)


class _Responses(Dialect):
    """The Responses API. A choice is one message of the answer, with its parts joined.

    Its index is that of its item in `output`; each tool call is a choice as well.
    """

    name = "responses"
    path = "/v1/responses"
    framing = NAMED_SSE
    inside = ("response",)
    _not_again = frozenset({"stream", "stream_options", "background", "grounding"})

    def messages(self, body: Body) -> tuple[Message, ...]:
        """Return the instructions and the input items, with consecutive indices."""
        instructions = tuple(read_parts(body.get("instructions")))
        found = [Message(0, "system", instructions)] if instructions else []
        for index, item in enumerate(_items(body), start=len(found)):
            if (message := _message(index, item)) is not None:
                found.append(message)
        return tuple(found)

    def unread(self, body: Body) -> tuple[str, ...]:
        items = _items(body)
        warnings = [
            f"{name}: {what} is on the model server and was not read"
            for name, what in _ELSEWHERE.items()
            if body.get(name)
        ]
        if there := sum(item.get("type") == "item_reference" for item in items):
            warnings.append(f"input: {there} items are on the model server and were not read")
        if unread := sum(map(_unread_in, items)):
            warnings.append(f"input: {unread} parts without text (images, audio, other files) were not read")
        tools = [string(tool.get("type")) for tool in dicts(body.get("tools"))]
        if names := [name for name in tools if name and name not in _RUN_HERE]:
            warnings.append(
                f"tools: results of server tools ({', '.join(names)}) are read only if the answer contains them"
            )
        return tuple(warnings)

    def schema(self, body: Body) -> Body | None:
        return object_or_none(member(member(body, "text"), "format").get("schema"))

    def resampled(self, body: Body, temperature: float) -> Body | None:
        """Return the same request, not streamed or stored; None in a conversation, which it would extend."""
        if body.get("conversation"):
            return None
        return self._again(body, temperature=temperature, store=False)

    def continued(self, body: Body, answer: str, message: str) -> Body | None:
        """Return the request with two more items, not stored; None in a conversation, which it would extend."""
        items = _items(body)
        if body.get("conversation") or not items:
            return None
        return self._again(body, input=items + turns(answer, message), store=False)

    def answers_later(self, body: Body) -> bool:
        return body.get("background") is True and body.get("stream") is not True

    def parse_event(self, event: Body) -> ParsedEvent:
        kind = string(event.get("type"))
        place, delta = index_of(event, 0, "output_index"), string(event.get("delta"))
        if kind == "response.output_text.delta":
            return ParsedEvent([(place, ChoiceDelta(delta, None, probabilities(event.get("logprobs"))))])
        if kind in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            return ParsedEvent([(place, ChoiceDelta(arguments={0: delta}))])
        if kind in _ENDS or event.get("object") == "response":
            return _whole(event if event.get("object") == "response" else member(event, "response"))
        return ParsedEvent((), member(event, "response") or None)

    def choices(self, choices: Sequence[Choice]) -> Sequence[Choice]:
        """Drop empty items, except the first if all are empty."""
        return [choice for choice in choices if choice.text or choice.arguments] or choices[:1]

    def carrier_side(self, event: Body, request: Body) -> Side | None:
        return "before" if string(event.get("type")) in _ENDS else None

    def own_event(self, head: Body) -> Body:
        return {"type": "keepalive", "sequence_number": 0}  # openai-node raises on unknown types

    def failure(self, fault: Fault) -> Body:
        """Render an error as OpenAI's servers do: inside an event named `error`, on which SDKs raise."""
        return {"type": "error", "sequence_number": 0, **openai_error(fault)}


def _items(body: Body) -> list[dict[str, Any]]:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else dicts(given)


def _message(index: int, item: Body) -> Message | None:
    if "role" in item:
        return read_message(index, item)
    parts = tuple(_given(item))
    return Message(index, "tool", parts) if parts else None


def _given(item: Body) -> Iterator[Part]:
    """Yield the output of a tool: of a function, of a shell or code, or passages found in files."""
    yield from read_parts(item.get("output"), "tool_result")
    for each in dicts(item.get("output")):
        yield from read_parts([each.get("stdout"), each.get("stderr")], "tool_result")
    for each in dicts(item.get("outputs")):
        yield from read_parts(each.get("logs"), "tool_result")
    for each in dicts(item.get("results")):
        if text := string(each.get("text")):
            yield Part(text, "document", string(each.get("file_id")) or None, string(each.get("filename")) or None)


def _unread_in(item: Body) -> int:
    if "role" in item:
        return unread_in(item.get("content"))
    known = string(item.get("type")) in _NOT_CONTEXT or item.get("type") == "item_reference"
    return 0 if known or any(_given(item)) else 1


def _whole(response: Body) -> ParsedEvent:
    output = response.get("output")
    items = list(enumerate(output)) if isinstance(output, list) else []
    pieces = [(index, piece) for index, item in items if isinstance(item, dict) for piece in _item(item)]
    given = [part for item in dicts(output) if "role" not in item for part in _given(item)]
    return ParsedEvent(pieces, response, _usage(response), _reason(response), given)


def _item(item: Body) -> Iterator[ChoiceDelta]:
    kind = string(item.get("type"))
    if kind == "message":
        parts = [part for part in dicts(item.get("content")) if part.get("type") == "output_text"]
        found = [each for part in parts for each in probabilities(part.get("logprobs"))]
        yield ChoiceDelta("".join(string(part.get("text")) for part in parts), None, found, repeats=True)
    elif kind in _CALLS:
        yield ChoiceDelta(arguments={0: string(item.get(_CALLS[kind]))}, repeats=True)


def _usage(response: Body) -> Body | None:
    usage = member(response, "usage")
    counts = {ours: usage[theirs] for theirs, ours in _COUNTS.items() if isinstance(usage.get(theirs), int)}
    details = {ours: usage[theirs] for theirs, ours in _DETAILS.items() if isinstance(usage.get(theirs), dict)}
    return counts | details or None


def _reason(response: Body) -> str | None:
    """Return the finish reason in the terms of chat completions; None if the response failed or is in progress."""
    if response.get("status") == "incomplete":
        reason = string(member(response, "incomplete_details").get("reason"))
        return _REASONS.get(reason, reason or "length")
    if response.get("status") != "completed":
        return None
    called = any(string(item.get("type")) in _CALLS for item in dicts(response.get("output")))
    return "tool_calls" if called else "stop"


CHAT = _Chat()
COMPLETIONS = _Completions()
RESPONSES = _Responses()
