"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any

from proxy.dialects.answer import Dialect, Piece, dicts, index_of
from proxy.dialects.parts import read_messages
from proxy.types import Message

_LEAST = -700.0  # the least log probability that is told apart from none; exp() refuses integers far below


def _messages(body: Mapping[str, Any]) -> tuple[Message, ...]:
    return read_messages(body.get("messages"))


def _piece(choice: Mapping[str, Any]) -> Piece:
    said = choice.get("delta") or choice.get("message")
    said = said if isinstance(said, dict) else {}
    content, reason = said.get("content"), choice.get("finish_reason")
    return Piece(
        text=content if isinstance(content, str) else "",
        finish_reason=reason if isinstance(reason, str) else None,
        probabilities=_probabilities(choice.get("logprobs")),
        arguments={index_of(call, at): _arguments(call) for at, call in enumerate(dicts(said.get("tool_calls")))},
    )


def _arguments(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else ""


def _probabilities(logprobs: Any) -> list[float]:
    tokens = dicts(logprobs.get("content")) if isinstance(logprobs, dict) else []
    values = (token.get("logprob") for token in tokens)
    return [exp(max(_LEAST, min(value, 0.0))) for value in values if isinstance(value, (int, float))]


CHAT = Dialect("chat", "chat.completion.chunk", _messages, _piece)
