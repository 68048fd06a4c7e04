"""OpenAI's chat completions, and its legacy completions: a prompt instead of messages, a text instead of a message."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp
from typing import Any

from groundwire.dialects.dialect import (
    Body,
    ChoiceDelta,
    Dialect,
    ParsedEvent,
    Side,
    changed,
    continued,
    dicts,
    index_of,
    member,
    object_or_none,
    read_messages,
    string,
    unread_parts,
)
from groundwire.domain import Message, Part

_LEAST = -700.0  # lower bound of log probabilities; exp() refuses integers far below
_NOT_AGAIN = ("stream", "stream_options", "n", "best_of", "grounding")


def _messages(body: Body) -> tuple[Message, ...]:
    return read_messages(body.get("messages"))


def _unread(body: Body) -> tuple[str, ...]:
    unread = unread_parts(body.get("messages"))
    return (f"messages: {unread} parts without text (images, audio, other files) were not read",) if unread else ()


def _schema(body: Body) -> Body | None:
    return object_or_none(member(body.get("response_format"), "json_schema").get("schema"))


def expected(body: Body) -> int:
    """Return the number of choices that `n` requests."""
    n = body.get("n")
    return n if isinstance(n, int) and n > 0 else 1


def resampled(body: Body, temperature: float) -> Body:
    """Return the same request for a single choice without streaming."""
    return changed(body, _NOT_AGAIN, temperature=temperature)


def parse_event(piece: Callable[[Body], ChoiceDelta], event: Body) -> ParsedEvent:
    """Parse the `choices` of an event or a body, each with `piece`."""
    pieces = [(index_of(choice, at), piece(choice)) for at, choice in enumerate(dicts(event.get("choices")))]
    return ParsedEvent(pieces, event, object_or_none(event.get("usage")))


def _piece(choice: Body) -> ChoiceDelta:
    message = object_or_none(choice.get("delta") or choice.get("message")) or {}
    reason = choice.get("finish_reason")
    return ChoiceDelta(
        text=string(message.get("content")),
        finish_reason=reason if isinstance(reason, str) else None,
        probabilities=probabilities(member(choice, "logprobs").get("content")),
        arguments={index_of(call, at): _arguments(call) for at, call in enumerate(dicts(message.get("tool_calls")))},
    )


def _arguments(call: Body) -> str:
    return string(member(call, "function").get("arguments"))


def probabilities(tokens: Any) -> list[float]:
    """Return the probabilities (0–1) of tokens that have a `logprob`."""
    values = (token.get("logprob") for token in dicts(tokens))
    return [exp(max(_LEAST, min(value, 0.0))) for value in values if isinstance(value, (int, float))]


def carrier_side(event: Body, request: Body) -> Side | None:
    """Find the last event. Where usage was requested, that is the usage event, which SDKs expect at the very end."""
    if member(request, "stream_options").get("include_usage") is not True:
        return "after"
    return "before" if event.get("usage") else None


def own_event(kind: str, head: Body) -> Body:
    """Return an event without choices, shaped like a usage event."""
    return {**head, "object": kind, "choices": []}


CHAT = Dialect(
    name="chat",
    path="/v1/chat/completions",
    operation="chat",
    messages=_messages,
    parse_event=partial(parse_event, _piece),
    carrier_side=carrier_side,
    own_event=partial(own_event, "chat.completion.chunk"),
    unread=_unread,
    schema=_schema,
    expected=expected,
    resampled=resampled,
    continued=partial(continued, _NOT_AGAIN),
)


def _prompts(body: Body) -> tuple[Message, ...]:
    """Return the prompt as one user message, with one part per prompt of a list. Token arrays hold no text."""
    prompt = body.get("prompt")
    prompts = prompt if isinstance(prompt, list) else [prompt]
    parts = tuple(Part(text) for text in prompts if isinstance(text, str))
    return (Message(0, "user", parts),) if parts else ()


def _expected_for_prompts(body: Body) -> int:
    """Return `n` times the number of prompts; a list of token numbers is one prompt."""
    prompt = body.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) else 1
    return expected(body) * prompts


def _unread_prompts(body: Body) -> tuple[str, ...]:
    prompt = body.get("prompt")
    is_unread = isinstance(prompt, list) and not all(isinstance(each, str) for each in prompt)
    return ("prompt: it has tokens instead of text, which were not read",) if is_unread else ()


def _text_piece(choice: Body) -> ChoiceDelta:
    reason = choice.get("finish_reason")
    return ChoiceDelta(string(choice.get("text")), reason if isinstance(reason, str) else None)


COMPLETIONS = Dialect(
    name="text_completion",
    path="/v1/completions",
    operation="text_completion",
    messages=_prompts,
    parse_event=partial(parse_event, _text_piece),
    carrier_side=carrier_side,
    own_event=partial(own_event, "text_completion"),
    unread=_unread_prompts,
    expected=_expected_for_prompts,
    resampled=resampled,
)
