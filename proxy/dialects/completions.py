"""OpenAI's older completions: a prompt instead of messages, a text instead of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proxy.dialects.answer import Dialect, Piece
from proxy.types import Message, Part


def _messages(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """The prompt as one user message; a list of prompts as one part each. Token arrays hold no text."""
    prompt = body.get("prompt")
    prompts = prompt if isinstance(prompt, list) else [prompt]
    parts = tuple(Part(text) for text in prompts if isinstance(text, str))
    return (Message(0, "user", parts),) if parts else ()


def _piece(choice: Mapping[str, Any]) -> Piece:
    text, reason = choice.get("text"), choice.get("finish_reason")
    return Piece(text if isinstance(text, str) else "", reason if isinstance(reason, str) else None)


COMPLETIONS = Dialect("text_completion", "text_completion", _messages, _piece)
