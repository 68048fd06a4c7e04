"""One wire format as a set of functions and values, and an answer in any of them."""

from __future__ import annotations

import base64
import binascii
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from groundwire.dialects.framing import SSE, Framing
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Choice, Message, Part, Role, Source, SourceKind


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in OpenAI's terms; `status` is the HTTP status, also where the error is sent within a stream."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None
    status: int = 500


def openai_error(fault: Fault) -> Mapping[str, Any]:
    """Render an error in OpenAI's shape; SDKs raise on it as a stream event too."""
    return {"error": {"message": fault.message, "type": fault.type, "param": fault.param, "code": fault.code}}


_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def anthropic_error(fault: Fault) -> Mapping[str, Any]:
    """Render an error in Anthropic's shape, as a body or an event; its type follows from its status."""
    otherwise = "api_error" if fault.status >= 500 else "invalid_request_error"
    type_ = _ANTHROPIC_TYPES.get(fault.status, otherwise)
    return {"type": "error", "error": {"type": type_, "message": fault.message}}


def error_body(message: str, type_: str, param: str | None = None, code: str | None = None) -> bytes:
    """Return an error as a JSON body in OpenAI's shape."""
    return dumps(openai_error(Fault(message, type_, param, code)))


_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_NO_CONTEXT = _TEXT_TYPES | {
    *("refusal", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"),
}


def read_messages(messages: Any) -> tuple[Message, ...]:
    """Return the messages with a known role, in order, with their index in the list and the parts that hold text."""
    if not isinstance(messages, list):
        return ()
    found = (read_message(index, message) for index, message in enumerate(messages) if isinstance(message, dict))
    return tuple(message for message in found if message is not None)


def read_message(index: int, message: Mapping[str, Any]) -> Message | None:
    """Parse one message, or return None if its role is unknown."""
    role = _ROLES.get(_string(message.get("role")) or "")
    return Message(index, role, tuple(read_parts(message.get("content")))) if role else None


def unread_parts(messages: Any) -> int:
    """Return the number of message parts without readable text: images, audio, and files that are not plain text."""
    if not isinstance(messages, list):
        return 0
    return sum(unread_in(message.get("content")) for message in messages if isinstance(message, dict))


def unread_in(content: Any) -> int:
    """Return the number of parts without readable text in the content of one message."""
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return sum(_string(block.get("type")) not in _NO_CONTEXT and not any(_block(block, "text")) for block in blocks)


def read_parts(content: Any, kind: Literal["text", "document", "tool_result"] = "text") -> Iterator[Part]:
    """Yield the parts that hold text, from content of any shape; plain text becomes a part of `kind`."""
    if isinstance(content, str):
        yield Part(content, kind)
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, str):
                yield Part(block, kind)
            elif isinstance(block, dict):
                yield from _block(block, kind)


def _block(block: Mapping[str, Any], kind: Literal["text", "document", "tool_result"]) -> Iterator[Part]:
    type_ = _string(block.get("type"))
    if type_ in _TEXT_TYPES and isinstance(block.get("text"), str):
        yield Part(block["text"], kind)
    elif type_ in ("file", "input_file"):
        yield from _file(block.get("file", block))
    elif type_ == "document":
        yield from _document(block)
    elif type_ == "search_result":
        text = "\n".join(part.text for part in read_parts(block.get("content")))
        source = _string(block.get("source"))
        yield Part(text, "document", source, _string(block.get("title")), source if is_url(source) else None)
    elif type_ in ("tool_result", "mcp_tool_result"):
        yield from read_parts(block.get("content"), "tool_result")
    elif type_ == "web_fetch_tool_result":
        fetched = block.get("content")
        yield from read_parts([fetched.get("content")] if isinstance(fetched, dict) else None)


def _document(block: Mapping[str, Any]) -> Iterator[Part]:
    """Read Anthropic's document block: its text, or its content blocks joined."""
    source = block.get("source")
    if not isinstance(source, dict):
        return
    content = source.get("data") if source.get("type") == "text" else source.get("content")
    text = "\n".join(part.text for part in read_parts(content))
    if text:
        yield Part(text, "document", None, _string(block.get("title")))


def _file(file: Any) -> Iterator[Part]:
    """Read OpenAI's file part if it holds plain text or JSON in a data URL; yield nothing for other files."""
    if not isinstance(file, dict) or not isinstance(file.get("file_data"), str):
        return
    header, comma, data = file["file_data"].partition(",")
    if not comma or not header.startswith(("data:text/", "data:application/json")):
        return
    try:
        raw = base64.b64decode(data, validate=True) if header.endswith(";base64") else unquote_to_bytes(data)
        yield Part(raw.decode(), "document", None, _string(file.get("filename")))
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return


def is_url(text: str | None) -> bool:
    """Return whether a text is an HTTP or HTTPS URL."""
    return text is not None and text.startswith(("http://", "https://")) and not any(map(str.isspace, text))


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


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


def changed(body: Body, dropped: Collection[str], **members: Any) -> Body:
    """Return a request without the keys in `dropped` and with other members added or replaced."""
    return {key: value for key, value in body.items() if key not in dropped} | members


def continued(dropped: Collection[str], body: Body, answer: str, message: str, **members: Any) -> Body | None:
    """Return a request as `changed` does, with two more messages; None if it has no list of messages."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    return changed(body, dropped, messages=messages + turns(answer, message), **members)


def turns(answer: str, message: str) -> list[Body]:
    """Return the messages that continue a conversation: the answer and a further user message."""
    return [{"role": "assistant", "content": answer}, {"role": "user", "content": message}]


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
    unread: Callable[[Body], tuple[str, ...]] = lambda _: ()
    schema: Callable[[Body], Body | None] = lambda _: None
    expected: Callable[[Body], int] = lambda _: 1
    temperature: Callable[[Body], Any] = lambda body: body.get("temperature")
    resampled: Callable[[Body, float], Body | None] = lambda body, temperature: None
    continued: Callable[[Body, str, str], Body | None] = lambda body, answer, message: None
    answers_later: Callable[[Body], bool] = lambda _: False
    choices: Callable[[Sequence[Choice]], Sequence[Choice]] = lambda choices: choices
    framing: Framing = SSE
    inside: tuple[str, ...] = ()
    error: Callable[[Fault], Body] = openai_error
    failure: Callable[[Fault], Body] = openai_error
    native: bool = False


def dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a JSON array; an empty list for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def object_or_none(value: Any) -> dict[str, Any] | None:
    """Return a JSON object; None for any other value."""
    return value if isinstance(value, dict) else None


def member(value: Any, name: str) -> dict[str, Any]:
    """Return the object under `name`; an empty one if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def string(value: Any) -> str:
    """Return a JSON string; an empty one for any other value."""
    return value if isinstance(value, str) else ""


def index_of(value: Body, default: int, name: str = "index") -> int:
    """Return the `index` of an object, else `default`."""
    index = value.get(name)
    return index if isinstance(index, int) else default


_KEPT = 2**19  # characters of answer text kept for verification, and as many of arguments: about 128k tokens
_GIVEN = 4 * 2**20  # characters of tool output kept
MAX_CHOICES = 512  # maximum number of choices kept; OpenAI's models return 128 at most


class Answer:
    """The choices of one answer received so far. `expected` is the number of choices requested.

    Only the start of a very long answer is kept; `unread` of each choice is the number of characters dropped. Choices
    beyond `MAX_CHOICES` are dropped and counted in `unread` of the first.
    """

    def __init__(self, dialect: Dialect, expected: int) -> None:
        self._dialect = dialect
        self._expected = expected
        self._head: dict[str, Any] = {}
        self._texts: dict[int, list[str]] = defaultdict(list)
        self._arguments: dict[int, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._probabilities: dict[int, tuple[float, int]] = {}  # sum and count
        self._argument_length = 0
        self._reasons: dict[int, str | None] = {}
        self._unread: dict[int, int] = defaultdict(int)
        self._given: list[Part] = []
        self._given_length = 0
        self._reason: str | None = None
        self.length = 0
        self.usage: Mapping[str, Any] = {}

    @classmethod
    def whole(cls, dialect: Dialect, body: Body) -> Answer:
        """Build the answer from a whole body, not streamed."""
        answer = cls(dialect, expected=1)
        answer.add(body)
        return answer

    def add(self, event: Body) -> None:
        """Add one decoded event."""
        parsed = self._dialect.parse_event(event)
        if parsed.head and not self._head:
            self._head = {key: parsed.head[key] for key in ("id", "created", "model") if key in parsed.head}
        if parsed.usage is not None:
            self.usage = {**self.usage, **parsed.usage}
        for index, piece in parsed.pieces:
            self._add(index, piece)
        for part in parsed.given:
            if self._given_length + len(part.text) <= _GIVEN:
                self._given_length += len(part.text)
                self._given.append(part)
        self._reason = parsed.finish_reason or self._reason

    def _add(self, index: int, piece: ChoiceDelta) -> None:
        if index not in self._reasons and len(self._reasons) >= MAX_CHOICES:
            self._unread[next(iter(self._reasons))] += len(piece.text)
            return
        self._reasons.setdefault(index, None)
        if piece.repeats and (index in self._texts or index in self._arguments):
            return
        if piece.text:
            self.length += self._keep(index, self._texts[index], piece.text, _KEPT - self.length)
        if piece.probabilities:
            total, count = self._probabilities.get(index, (0.0, 0))
            self._probabilities[index] = (total + sum(piece.probabilities), count + len(piece.probabilities))
        if piece.finish_reason:
            self._reasons[index] = piece.finish_reason
        for call, fragment in piece.arguments.items():
            room = _KEPT - self._argument_length
            self._argument_length += self._keep(index, self._arguments[index][call], fragment, room)

    def _keep(self, index: int, fragments: list[str], more: str, room: int) -> int:
        """Append as much of `more` as `room` allows and return the length appended."""
        kept = more[: max(0, room)]
        if kept:
            fragments.append(kept)
        self._unread[index] += len(more) - len(kept)
        return len(kept)

    def choices(self, *, with_arguments: bool = False) -> tuple[Choice, ...]:
        """Return the choices received so far, in order, with the arguments of tool calls only on request."""
        found = [
            Choice(
                index,
                "".join(self._texts.get(index, ())),
                reason or self._reason,
                self._mean_probability(index),
                self._joined_arguments(index) if with_arguments else (),
                self._unread[index],
            )
            for index, reason in sorted(self._reasons.items())
        ]
        return tuple(self._dialect.choices(found))

    def _mean_probability(self, index: int) -> float | None:
        total, count = self._probabilities.get(index, (0.0, 0))
        return total / count if count else None

    def _joined_arguments(self, index: int) -> tuple[str, ...]:
        return tuple("".join(fragments) for _, fragments in sorted(self._arguments.get(index, {}).items()))

    @property
    def id(self) -> str | None:
        """The id that the upstream gave the answer."""
        return _text_or_none(self._head.get("id"))

    @property
    def model(self) -> str | None:
        """The name that the upstream gives the answering model."""
        return _text_or_none(self._head.get("model"))

    @property
    def prompt_tokens(self) -> int | None:
        """The number of prompt tokens that the upstream reports, including cached ones."""
        read, cached = self.usage.get("prompt_tokens"), member(self.usage, "prompt_tokens_details").get("cached_tokens")
        if type(read) is not int:
            return None
        return read + cached if type(cached) is int and cached > read else read

    @property
    def given(self) -> tuple[Source, ...]:
        """The output of tools that ran at the model server, as sources; the request does not contain it."""
        return tuple(_given_source(number, part) for number, part in enumerate(self._given, start=1))

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The finish reasons received so far, in the order of the choices; choices without one are left out."""
        found = tuple(reason for _, reason in sorted(self._reasons.items()) if reason)
        return found or ((self._reason,) if self._reason else ())

    @property
    def is_finished(self) -> bool:
        """True when every choice, requested or received, has its finish reason."""
        return self._reason is not None or len(self.finish_reasons) >= max(self._expected, len(self._reasons))

    @property
    def is_cut_short(self) -> bool:
        """True when nothing was received, or a choice received has no finish reason yet."""
        return self._reason is None and (not self._reasons or None in self._reasons.values())

    @property
    def own_event(self) -> Body:
        """An event without content, to which the verdict on this answer can be added."""
        return self._dialect.own_event(self._head)


def _given_source(number: int, part: Part) -> Source:
    labels = tuple(filter(None, (part.id, part.title)))
    kind: SourceKind = "document" if part.kind == "document" else "tool"
    label = next(iter(labels), None)
    return Source(
        part.id or f"answer.{number}", kind, part.text, title=part.title, labels=labels, label=label, url=part.url
    )


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
