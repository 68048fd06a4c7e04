"""What a dialect is: one wire shape, told in functions and values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from proxy.dialects.error import Fault, openai_error
from proxy.dialects.framing import Framing
from proxy.dialects.sse import SSE
from proxy.types import Choice, Message, Part

Body = Mapping[str, Any]
"""A decoded JSON object: the body of a request or an answer, or an event of a stream."""

Side = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Piece:
    """What one choice of one event adds; `arguments` are fragments of tool-call arguments by the call's index.

    What `repeats` the choice as a whole counts only where nothing of it came before.
    """

    text: str = ""
    finish_reason: str | None = None
    probabilities: Sequence[float] = ()
    arguments: Mapping[int, str] = field(default_factory=dict)
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What one event, or a whole body, says: what it adds to each choice, and what it tells of the answer.

    `head` is the object that names the answer (`id`, `model`, `created`), `usage` has its tokens under the names of
    chat completions, and `finish_reason`, in the words of chat completions too, is that of all choices at once. `given`
    is what tools at the model server gave the model while it answered.
    """

    pieces: Iterable[tuple[int, Piece]] = ()
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


def _not_again(_: Body, __: float) -> Body | None:
    return None


def _not_continued(_: Body, __: str, ___: str) -> Body | None:
    return None


def continued(body: Body, field: str, dropped: Collection[str], answer: str, message: str) -> Body:
    """Return a request with its answer and a further message of the user at the end of the list that `field` holds.

    Without the keys that are `dropped`.
    """
    turns = [{"role": "assistant", "content": answer}, {"role": "user", "content": message}]
    return {key: value for key, value in body.items() if key not in dropped} | {field: [*body[field], *turns]}


def _never(_: Body) -> bool:
    return False


def _as_they_are(choices: Sequence[Choice]) -> Sequence[Choice]:
    return choices


@dataclass(frozen=True, slots=True)
class Dialect:
    """One wire shape, as pure functions of decoded JSON that read what they understand and never raise.

    `path` is where it is spoken, `name` what jobs call it, `operation` its name in OpenTelemetry's GenAI conventions;
    `native` says that only Ollama speaks it, below its root instead of `/v1`.

    Of a request: `messages` is what it says, `unread` one sentence for each thing in it that cannot be read, `schema`
    the JSON schema that its answer is to follow, `expected` how many choices that will have, `temperature` whatever it
    states as such, and `again` the same request to be asked once more at another temperature, for an answer in one
    piece and with no traces left (None: it cannot be); `continued` is the same with an answer to it and a further
    message of the user, likewise; `answers_later` is whether its reply will hold no answer yet.

    Of an answer: `hear` is what one event says, `last` whether a finished answer to this request (the second argument)
    has its last event here, and then on which side of it there is room for another; `choices` are those that a client
    sees, where texts that belong together came under several indices.

    Of what is added: a verdict is a member `grounding` of a body or of the last event, where it stands in the object
    that `inside` leads to; `own_event` is an event for a verdict alone, given the head of its answer; `error` and
    `failure` are the shape of an error as a body and in a stream.
    """

    name: str
    path: str
    operation: Literal["chat", "text_completion"]
    messages: Callable[[Body], tuple[Message, ...]]
    hear: Callable[[Body], Said]
    last: Callable[[Body, Body], Side | None]
    own_event: Callable[[Body], Body]
    unread: Callable[[Body], tuple[str, ...]] = _nothing
    schema: Callable[[Body], Body | None] = _no_schema
    expected: Callable[[Body], int] = _one
    temperature: Callable[[Body], Any] = _temperature
    again: Callable[[Body, float], Body | None] = _not_again
    continued: Callable[[Body, str, str], Body | None] = _not_continued
    answers_later: Callable[[Body], bool] = _never
    choices: Callable[[Sequence[Choice]], Sequence[Choice]] = _as_they_are
    framing: Framing = SSE
    inside: tuple[str, ...] = ()
    error: Callable[[Fault], Body] = openai_error
    failure: Callable[[Fault], Body] = openai_error
    native: bool = False


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON array; nothing for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def member(value: Any, name: str) -> dict[str, Any]:
    """The object that a member of an object is; an empty one when there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def string(value: Any) -> str:
    """A JSON string; an empty one for any other value."""
    return value if isinstance(value, str) else ""


def index_of(value: Body, default: int) -> int:
    """The `index` that an object states, else `default`."""
    index = value.get("index")
    return index if isinstance(index, int) else default
