"""OpenAI's chat completions, and its legacy completions: a prompt instead of messages, a text instead of a message."""

from __future__ import annotations

from math import exp
from typing import Any

from groundwire.dialects.dialect import (
    Body,
    ChoiceDelta,
    Dialect,
    ParsedEvent,
    Side,
    dicts,
    index_of,
    member,
    object_or_none,
    string,
    unread_parts,
)
from groundwire.domain import Message, Part

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


CHAT = _Chat()
COMPLETIONS = _Completions()
