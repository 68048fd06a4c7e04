"""Replies that behave as Ollama does on the wire, for the model server of the edge tests.

It has a context window: of a longer prompt it drops messages from the front, then the front of the rest until half of
the window is free, and the only sign of it is the count of the tokens that it read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.edge.upstream import Received, Reply, as_event, as_json, body_reply, pieces, stream_reply

NDJSON = (("content-type", "application/x-ndjson"),)
JSON = ("content-type", "application/json; charset=utf-8")
CREATED = "2026-11-20T10:15:30.123456789Z"
KEPT = 4
TEMPLATE = 9  # tokens that a chat template adds


def count(text: str) -> int:
    """Return about as many tokens as real tokenizers make of English text."""
    return len(re.findall(r"\w+|[^\w\s]", text))


@dataclass(slots=True)
class OllamaLike:
    """A model with its answer, context window and thoughts; `calls` are tool calls, in Ollama's format."""

    text: str = "The sky is blue."
    window: int = 4096
    thinking: str = ""
    calls: Sequence[Mapping[str, Any]] = ()
    done_reason: str = "stop"
    more: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, received: Received) -> Reply:
        """Return the reply to any request."""
        asked = json.loads(received.body) if received.body else {}
        match received.path:
            case "/v1/chat/completions":
                return self._openai(asked)
            case "/api/chat" | "/api/generate" as path:
                return self._native(path, asked)
            case "/api/pull":
                lines = [{"status": "pulling manifest"}, {"status": "verifying sha256 digest"}, {"status": "success"}]
                return ndjson(*lines)
            case "/api/embed":
                body = {"model": asked["model"], "embeddings": [[0.25, -0.5]], "prompt_eval_count": 3}
            case "/api/tags":
                body = {"models": [{"name": "llama3.2:latest", "model": "llama3.2:latest", "size": 7, "digest": "a8"}]}
            case "/api/version":
                body = {"version": "0.33.3"}
            case _:
                return Reply((b"404 page not found",), 404, (("content-type", "text/plain"),))
        return body_reply(as_json(body)).with_headers(JSON)

    def prompt_tokens(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> int:
        """Return the number of tokens of these messages that it reads."""
        window = options.get("num_ctx", self.window)
        *earlier, last = [(message["role"], count(str(message["content"]))) for message in messages]
        while earlier and TEMPLATE + sum(tokens for _, tokens in [*earlier, last]) > window:
            dropped = next((at for at, (role, _) in enumerate(earlier) if role != "system"), None)
            if dropped is None:
                break
            del earlier[dropped]
        tokens = TEMPLATE + sum(tokens for _, tokens in [*earlier, last])
        return tokens if tokens < window else window - (window - KEPT) // 2

    def _openai(self, asked: Mapping[str, Any]) -> Reply:
        usage = {"prompt_tokens": self.prompt_tokens(asked["messages"], {}), "completion_tokens": 5, "total_tokens": 0}
        head = {"id": "chatcmpl-497", "created": 1764000000, "model": asked["model"], "system_fingerprint": "fp_ollama"}
        if not asked.get("stream"):
            message = {"role": "assistant", "content": self.text}
            choices = [{"index": 0, "message": message, "finish_reason": self.done_reason}]
            return body_reply(as_json({**head, "object": "chat.completion", "choices": choices, "usage": usage}))
        head["object"] = "chat.completion.chunk"
        deltas = [*((piece, None) for piece in pieces(self.text)), ("", self.done_reason)]
        events = [
            {**head, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}
            for text, reason in deltas
        ]
        if (asked.get("stream_options") or {}).get("include_usage"):
            events.append({**head, "choices": [], "usage": usage})
        return stream_reply([*map(as_event, events), b"data: [DONE]\n\n"])

    def _native(self, path: str, asked: Mapping[str, Any]) -> Reply:
        if asked["model"] == "missing":
            return Reply((as_json({"error": "model 'missing' not found"}),), 404, (JSON,))
        lines = list(self._lines(path, asked))
        if asked.get("stream", True):
            return ndjson(*lines)
        whole = dict(lines[-1])
        if path == "/api/chat":
            whole["message"] = {key: value for line in lines for key, value in line["message"].items()}
            whole["message"]["content"] = self.text
        else:
            whole["response"] = self.text
        return body_reply(as_json(whole)).with_headers(JSON)

    def _lines(self, path: str, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        head = {"model": asked["model"], "created_at": CREATED}

        def line(text: str, **more: Any) -> dict[str, Any]:
            if path == "/api/chat":
                return head | {"message": {"role": "assistant", "content": text, **more}, "done": False}
            return head | {"response": text, **more, "done": False}

        if self.thinking and asked.get("think"):
            yield from (line("", thinking=piece) for piece in pieces(self.thinking))
        yield from map(line, pieces(self.text))
        if self.calls:
            yield line("", tool_calls=self.calls)
        messages = asked.get("messages") or [
            {"role": "user", "content": f"{asked.get('system', '')} {asked.get('prompt', '')}"}
        ]
        read = self.prompt_tokens(messages, asked.get("options") or {})
        times = {"total_duration": 4935886791, "load_duration": 534986708, "eval_duration": 4289432000}
        counts = {"prompt_eval_count": read, "prompt_eval_duration": 107345000, "eval_count": 237}
        end = {"done": True, "done_reason": self.done_reason, **times, **counts, **self.more}
        yield line("") | end | ({"context": [1, 2, 3]} if path == "/api/generate" else {})


def ndjson(*lines: Mapping[str, Any]) -> Reply:
    """Return a stream of JSON lines, each in a separate packet."""
    return Reply(tuple(as_json(line) + b"\n" for line in lines), 200, NDJSON, "chunked")
