"""The `Dialect` type: one wire format as a set of functions and values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from groundwire.dialects.error import Fault, openai_error
from groundwire.dialects.framing import Framing
from groundwire.dialects.sse import SSE
from groundwire.domain import Choice, Message, Part

Body = Mapping[str, Any]
"""A decoded JSON object: a request body, a response body, or a stream event."""

Side = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class ChoiceDelta:
    """The part of one event that extends one choice. `arguments` maps the index of a tool call to a fragment.

    A piece that `repeats` the whole choice is used only when nothing of that choice was received before.
    """

    text: str = ""
    finish_reason: str | None = None
    probabilities: Sequence[float] = ()
    arguments: Mapping[int, str] = field(default_factory=dict)
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class ParsedEvent:
    """The content of one event or of a whole body.

    `pieces` extend choices by index. `head` is the object with the answer's `id`, `model` and `created`. `usage` uses
    the token names of chat completions; `finish_reason`, in their terms too, applies to all choices at once. `given` is
    the output of tools at the model server.
    """

    pieces: Iterable[tuple[int, ChoiceDelta]] = ()
    head: Body | None = None
    usage: Body | None = None
    finish_reason: str | None = None
    given: Iterable[Part] = ()


def _nothing(_: Body) -> tuple[str, ...]:
    return ()


def _no_schema(_: Body) -> Body | None:
    return None


def _one(_: Body) -> int:
    return 1


def _temperature(body: Body) -> Any:
    return body.get("temperature")


def _not_resampled(_: Body, __: float) -> Body | None:
    return None


def _not_continued(_: Body, __: str, ___: str) -> Body | None:
    return None


def continued(body: Body, field: str, dropped: Collection[str], answer: str, message: str) -> Body:
    """Return a request extended by its answer and a further user message, at the end of the list in `field`.

    Keys in `dropped` are left out.
    """
    turns = [{"role": "assistant", "content": answer}, {"role": "user", "content": message}]
    return {key: value for key, value in body.items() if key not in dropped} | {field: [*body[field], *turns]}


def _never(_: Body) -> bool:
    return False


def _as_they_are(choices: Sequence[Choice]) -> Sequence[Choice]:
    return choices


@dataclass(frozen=True, slots=True)
class Dialect:
    """One wire format, as pure functions of decoded JSON that read what they understand and never raise.

    `path` is the URL path, `name` identifies the dialect in stored jobs, and `operation` is its name in OpenTelemetry's
    GenAI conventions; `native` marks Ollama's own API, which is served below the root instead of `/v1`.

    Of a request: `messages` are its messages, `unread` one sentence for each part that cannot be read, `schema` the
    JSON schema that the answer must follow, `expected` the number of choices, and `temperature` the raw value given.
    `resampled` builds the same request at another temperature, unstreamed and leaving no trace at the server (None:
    impossible); `continued` does so with the answer and a further user message added. `answers_later` is true when the
    response will not contain the answer yet.

    Of an answer: `parse_event` parses one event. `carrier_side` returns None unless an event is the last one of a
    finished answer to this request (second argument), and then the side of it on which another event may be inserted.
    `choices` merges texts that clients see as one.

    Of the additions: a verdict is the member `grounding` of a body or of the last event, within the object at the path
    `inside`; `own_event` builds an event that carries only a verdict, given the head of its answer; `error` and
    `failure` render an error as a body and in a stream.
    """

    name: str
    path: str
    operation: Literal["chat", "text_completion"]
    messages: Callable[[Body], tuple[Message, ...]]
    parse_event: Callable[[Body], ParsedEvent]
    carrier_side: Callable[[Body, Body], Side | None]
    own_event: Callable[[Body], Body]
    unread: Callable[[Body], tuple[str, ...]] = _nothing
    schema: Callable[[Body], Body | None] = _no_schema
    expected: Callable[[Body], int] = _one
    temperature: Callable[[Body], Any] = _temperature
    resampled: Callable[[Body, float], Body | None] = _not_resampled
    continued: Callable[[Body, str, str], Body | None] = _not_continued
    answers_later: Callable[[Body], bool] = _never
    choices: Callable[[Sequence[Choice]], Sequence[Choice]] = _as_they_are
    framing: Framing = SSE
    inside: tuple[str, ...] = ()
    error: Callable[[Fault], Body] = openai_error
    failure: Callable[[Fault], Body] = openai_error
    native: bool = False


def dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a JSON array; an empty list for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def member(value: Any, name: str) -> dict[str, Any]:
    """Return the object under `name`; an empty one if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def string(value: Any) -> str:
    """Return a JSON string; an empty one for any other value."""
    return value if isinstance(value, str) else ""


def index_of(value: Body, default: int) -> int:
    """Return the `index` of an object, else `default`."""
    index = value.get("index")
    return index if isinstance(index, int) else default
