"""Ollama's own API: chat and generate. Both stream JSON lines unless `stream` is false."""

from __future__ import annotations

from collections.abc import Mapping
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
    string,
)
from groundwire.dialects.framing import NDJSON
from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.openai import probabilities
from groundwire.domain import Message, Part

_USAGE = {"prompt_eval_count": "prompt_tokens", "eval_count": "completion_tokens"}


class _Chat(Dialect):
    name = "ollama_chat"
    path = "/api/chat"
    framing = NDJSON
    native = True
    _not_again = frozenset({"grounding", "keep_alive"})

    def unread(self, body: Body) -> tuple[str, ...]:
        """Report images, in any message, and the earlier conversation in `context`, which holds tokens."""
        holders = [body, *dicts(body.get("messages"))]
        images = sum(len(found) for each in holders if isinstance(found := each.get("images"), list))
        return (
            *((f"images: {images} without text were not read",) if images else ()),
            *(("context: it has tokens instead of text and was not read",) if body.get("context") else ()),
        )

    def schema(self, body: Body) -> Body | None:
        return object_or_none(body.get("format"))

    def temperature(self, body: Body) -> Any:
        return member(body, "options").get("temperature")

    def resampled(self, body: Body, temperature: float) -> Body:
        return self._again(body, options=member(body, "options") | {"temperature": temperature})

    def _again(self, body: Body, **members: Any) -> Body:
        return super()._again(body, stream=False, **members)

    def parse_event(self, event: Body) -> ParsedEvent:
        message = member(event, "message")
        calls = enumerate(dicts(message.get("tool_calls")))
        arguments = {index_of(member(call, "function"), at): _arguments(call) for at, call in calls}
        return _parse_line(event, string(message.get("content")), arguments)

    def carrier_side(self, event: Body, request: Body) -> Side | None:
        """Take the line with `done` for the last: clients read nothing after it."""
        return "before" if event.get("done") is True else None

    def own_event(self, head: Body) -> Body:
        return {**_model(head), "message": {"role": "assistant", "content": ""}, "done": False}

    def error(self, fault: Fault) -> Body:
        return {"error": fault.message}


class _Generate(_Chat):
    name = "ollama_generate"
    path = "/api/generate"
    operation = "text_completion"

    def messages(self, body: Body) -> tuple[Message, ...]:
        """Return the system prompt and the prompt, with consecutive indices; with `raw` only the prompt."""
        system = "" if body.get("raw") is True else string(body.get("system"))
        found = [Message(0, "system", (Part(system),))] if system else []
        if prompt := string(body.get("prompt")):
            found.append(Message(len(found), "user", (Part(prompt),)))
        return tuple(found)

    def parse_event(self, event: Body) -> ParsedEvent:
        return _parse_line(event, string(event.get("response")), {})

    def own_event(self, head: Body) -> Body:
        return {**_model(head), "response": "", "done": False}


def _parse_line(event: Body, text: str, arguments: Mapping[int, str]) -> ParsedEvent:
    """Parse one line. Reasoning, a separate field, is ignored; a line with an error has no content."""
    if "error" in event:
        return ParsedEvent()
    ends = event.get("done") is True
    reason = (string(event.get("done_reason")) or "stop") if ends else None
    usage = {ours: event[theirs] for theirs, ours in _USAGE.items() if ends and isinstance(event.get(theirs), int)}
    piece = ChoiceDelta(text, reason, probabilities(event.get("logprobs")), arguments)
    return ParsedEvent([(0, piece)], event, usage or None)


def _arguments(call: Body) -> str:
    arguments = member(call, "function").get("arguments")
    return "" if arguments is None else dumps(arguments).decode()


def _model(head: Body) -> Body:
    return {"model": head["model"]} if "model" in head else {}


OLLAMA_CHAT = _Chat()
OLLAMA_GENERATE = _Generate()
