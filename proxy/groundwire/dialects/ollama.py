"""Ollama's own API: chat and generate. Both stream JSON lines unless `stream` is false."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from groundwire.dialects.chat import probabilities
from groundwire.dialects.dialect import (
    Body,
    ChoiceDelta,
    Dialect,
    Fault,
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
)
from groundwire.dialects.framing import NDJSON
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Message, Part

_USAGE = {"prompt_eval_count": "prompt_tokens", "eval_count": "completion_tokens"}
_NOT_AGAIN = ("grounding", "keep_alive")


def _prompt(body: Body) -> tuple[Message, ...]:
    """Return the system prompt and the prompt, with consecutive indices; with `raw` only the prompt."""
    system = "" if body.get("raw") is True else string(body.get("system"))
    given = (("system", system), ("user", string(body.get("prompt"))))
    texts = [(role, text) for role, text in given if text]
    return tuple(
        Message(index, "system" if role == "system" else "user", (Part(text),))
        for index, (role, text) in enumerate(texts)
    )


def _unread(body: Body) -> tuple[str, ...]:
    """Report images, in any message, and the earlier conversation, which `context` of `generate` holds as tokens."""
    holders = [body, *dicts(body.get("messages"))]
    images = sum(len(found) for each in holders if isinstance(found := each.get("images"), list))
    return (
        *((f"images: {images} without text were not read",) if images else ()),
        *(("context: it has tokens instead of text and was not read",) if body.get("context") else ()),
    )


def _resampled(body: Body, temperature: float) -> Body:
    options = member(body, "options") | {"temperature": temperature}
    return changed(body, _NOT_AGAIN, stream=False, options=options)


def _parse_chat_event(event: Body) -> ParsedEvent:
    message = member(event, "message")
    calls = dicts(message.get("tool_calls"))
    arguments = {index_of(member(call, "function"), at): _arguments(call) for at, call in enumerate(calls)}
    return _parse_line(event, string(message.get("content")), arguments)


def _parse_line(event: Body, text: str, arguments: dict[int, str]) -> ParsedEvent:
    """Parse one line. Reasoning, a separate field, is ignored; a line with an error has no content."""
    if "error" in event:
        return ParsedEvent()
    ends = event.get("done") is True
    reason = (string(event.get("done_reason")) or "stop") if ends else None
    piece = ChoiceDelta(text, reason, probabilities(event.get("logprobs")), arguments)
    return ParsedEvent([(0, piece)], event, _usage(event) if ends else None)


def _arguments(call: Body) -> str:
    arguments = member(call, "function").get("arguments")
    return "" if arguments is None else dumps(arguments).decode()


def _usage(event: Body) -> Body | None:
    return {ours: event[theirs] for theirs, ours in _USAGE.items() if isinstance(event.get(theirs), int)} or None


def _carrier_side(event: Body, _: Body) -> Side | None:
    """Treat the line with `done` as the last: clients read nothing after it."""
    return "before" if event.get("done") is True else None


def _model(head: Body) -> Body:
    return {"model": head["model"]} if "model" in head else {}


def ollama_error(fault: Fault) -> Body:
    """Render an error in Ollama's shape, as a body or a line."""
    return {"error": fault.message}


OLLAMA_CHAT = Dialect(
    name="ollama_chat",
    path="/api/chat",
    operation="chat",
    messages=lambda body: read_messages(body.get("messages")),
    parse_event=_parse_chat_event,
    carrier_side=_carrier_side,
    own_event=lambda head: {**_model(head), "message": {"role": "assistant", "content": ""}, "done": False},
    unread=_unread,
    schema=lambda body: object_or_none(body.get("format")),
    temperature=lambda body: member(body, "options").get("temperature"),
    resampled=_resampled,
    continued=partial(continued, _NOT_AGAIN, stream=False),
    framing=NDJSON,
    error=ollama_error,
    failure=ollama_error,
    native=True,
)

OLLAMA_GENERATE = replace(
    OLLAMA_CHAT,
    name="ollama_generate",
    path="/api/generate",
    operation="text_completion",
    messages=_prompt,
    parse_event=lambda event: _parse_line(event, string(event.get("response")), {}),
    own_event=lambda head: {**_model(head), "response": "", "done": False},
)
