"""OpenAI's legacy completions: a prompt instead of messages, a text instead of a message."""

from __future__ import annotations

from functools import partial

from groundwire.dialects import chat
from groundwire.dialects.dialect import Body, ChoiceDelta, Dialect
from groundwire.domain import Message, Part


def _messages(body: Body) -> tuple[Message, ...]:
    """Return the prompt as one user message, with one part per prompt of a list. Token arrays hold no text."""
    prompt = body.get("prompt")
    prompts = prompt if isinstance(prompt, list) else [prompt]
    parts = tuple(Part(text) for text in prompts if isinstance(text, str))
    return (Message(0, "user", parts),) if parts else ()


def _expected(body: Body) -> int:
    """Return `n` times the number of prompts; a list of token numbers is one prompt."""
    prompt = body.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) else 1
    return chat.expected(body) * prompts


def _piece(choice: Body) -> ChoiceDelta:
    text, reason = choice.get("text"), choice.get("finish_reason")
    return ChoiceDelta(text if isinstance(text, str) else "", reason if isinstance(reason, str) else None)


COMPLETIONS = Dialect(
    name="text_completion",
    path="/v1/completions",
    operation="text_completion",
    messages=_messages,
    parse_event=partial(chat.parse_event, _piece),
    carrier_side=chat.carrier_side,
    own_event=partial(chat.own_event, "text_completion"),
    expected=_expected,
    resampled=chat.resampled,
)
