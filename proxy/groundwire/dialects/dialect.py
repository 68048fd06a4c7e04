"""The base of all wire formats, the parts of their messages, and an answer in any of them."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote_to_bytes

from groundwire.dialects.framing import SSE, Framing
from groundwire.dialects.jsonbytes import dumps
from groundwire.domain import Choice, Message, Part, Role, Source, SourceKind

Body = Mapping[str, Any]
"""A decoded JSON object: a request body, a response body, or a stream event."""

Side = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in OpenAI's terms; `status` is the HTTP status, also where the error is sent within a stream."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None
    status: int = 500


def openai_error(fault: Fault) -> Body:
    """Render an error in OpenAI's shape; SDKs raise on it as a stream event too."""
    return {"error": {"message": fault.message, "type": fault.type, "param": fault.param, "code": fault.code}}


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
    role = _ROLES.get(string(message.get("role")))
    return Message(index, role, tuple(read_parts(message.get("content")))) if role else None


def unread_parts(messages: Any) -> int:
    """Return the number of message parts without readable text: images, audio, and files that are not plain text."""
    return sum(unread_in(message.get("content")) for message in dicts(messages))


def unread_in(content: Any) -> int:
    """Return the number of parts without readable text in the content of one message."""
    return sum(
        string(block.get("type")) not in _NO_CONTEXT and not any(_block(block, "text")) for block in dicts(content)
    )


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
    type_ = string(block.get("type"))
    if type_ in _TEXT_TYPES and isinstance(block.get("text"), str):
        yield Part(block["text"], kind)
    elif type_ in ("file", "input_file"):
        yield from _file(block.get("file", block))
    elif type_ == "document":
        yield from _document(block)
    elif type_ == "search_result":
        text = "\n".join(part.text for part in read_parts(block.get("content")))
        source = string(block.get("source")) or None
        yield Part(text, "document", source, string(block.get("title")) or None, source if is_url(source) else None)
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
        yield Part(text, "document", None, string(block.get("title")) or None)


def _file(file: Any) -> Iterator[Part]:
    """Read OpenAI's file part if it holds plain text or JSON in a data URL; yield nothing for other files."""
    if not isinstance(file, dict) or not isinstance(file.get("file_data"), str):
        return
    header, comma, data = file["file_data"].partition(",")
    if not comma or not header.startswith(("data:text/", "data:application/json")):
        return
    try:
        raw = base64.b64decode(data, validate=True) if header.endswith(";base64") else unquote_to_bytes(data)
        yield Part(raw.decode(), "document", None, string(file.get("filename")) or None)
    except ValueError:
        return


def is_url(text: str | None) -> bool:
    """Return whether a text is an HTTP or HTTPS URL."""
    return text is not None and text.startswith(("http://", "https://")) and not any(map(str.isspace, text))


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


class Dialect(ABC):
    """One wire format, as pure functions of decoded JSON that read what they understand and never raise.

    `path` is the URL path, `name` identifies the dialect in stored jobs, and `operation` is its name in OpenTelemetry's
    GenAI conventions; `native` marks Ollama's own API, which is served below the root instead of `/v1`. A verdict is
    the member `grounding` of a body or of the last event, within the object at the path `inside`.
    """

    name: str
    path: str
    operation: Literal["chat", "text_completion"] = "chat"
    framing: Framing = SSE
    inside: tuple[str, ...] = ()
    native: bool = False
    _not_again: frozenset[str] = frozenset({"stream", "grounding"})  # members that a repeated request does not have

    def messages(self, body: Body) -> tuple[Message, ...]:
        """Return the messages of a request."""
        return read_messages(body.get("messages"))

    def unread(self, body: Body) -> tuple[str, ...]:
        """Return one sentence for each part of a request that cannot be read."""
        return ()

    def schema(self, body: Body) -> Body | None:
        """Return the JSON schema that the answer must follow."""
        return None

    def expected(self, body: Body) -> int:
        """Return the number of choices that a request asks for."""
        return 1

    def temperature(self, body: Body) -> Any:
        """Return the temperature as it is given."""
        return body.get("temperature")

    def resampled(self, body: Body, temperature: float) -> Body | None:
        """Return the same request at another temperature, unstreamed and leaving no trace at the server.

        None if that is impossible.
        """
        return self._again(body, temperature=temperature)

    def continued(self, body: Body, answer: str, message: str) -> Body | None:
        """Return the same request as `resampled` does, with the answer and a further user message added."""
        messages = body.get("messages")
        return self._again(body, messages=messages + turns(answer, message)) if isinstance(messages, list) else None

    def _again(self, body: Body, **members: Any) -> Body:
        """Return a request for a second answer, with members added or replaced."""
        return {key: value for key, value in body.items() if key not in self._not_again} | members

    def answers_later(self, body: Body) -> bool:
        """Return whether the response will not contain the answer yet."""
        return False

    @abstractmethod
    def parse_event(self, event: Body) -> ParsedEvent:
        """Parse one event, or a whole body."""

    @abstractmethod
    def carrier_side(self, event: Body, request: Body) -> Side | None:
        """Return the side of an event on which another may be inserted.

        None unless the event is the last one of a finished answer to this request.
        """

    @abstractmethod
    def own_event(self, head: Body) -> Body:
        """Return an event that carries only a verdict, given the head of its answer."""

    def choices(self, choices: Sequence[Choice]) -> Sequence[Choice]:
        """Merge texts that clients see as one."""
        return choices

    def error(self, fault: Fault) -> Body:
        """Render an error as a body."""
        return openai_error(fault)

    def failure(self, fault: Fault) -> Body:
        """Render an error as an event of a stream."""
        return self.error(fault)


def turns(answer: str, message: str) -> list[Body]:
    """Return the messages that continue a conversation: the answer and a further user message."""
    return [{"role": "assistant", "content": answer}, {"role": "user", "content": message}]


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


@dataclass(slots=True)
class _Received:
    """The pieces of one choice. `probability` is the sum over `tokens`, `unread` the number of characters dropped."""

    texts: list[str] = field(default_factory=list)
    arguments: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    has_begun: bool = False
    finish_reason: str | None = None
    probability: float = 0.0
    tokens: int = 0
    unread: int = 0

    def keep(self, fragments: list[str], more: str, room: int) -> int:
        """Append as much of `more` as `room` allows and return the length appended."""
        kept = more[: max(0, room)]
        if kept:
            fragments.append(kept)
        self.unread += len(more) - len(kept)
        return len(kept)

    def choice(self, index: int, finish_reason: str | None, with_arguments: bool) -> Choice:
        """Return the choice."""
        return Choice(
            index,
            "".join(self.texts),
            self.finish_reason or finish_reason,
            self.probability / self.tokens if self.tokens else None,
            tuple("".join(each) for _, each in sorted(self.arguments.items())) if with_arguments else (),
            self.unread,
        )


class Answer:
    """The choices of one answer received so far. `expected` is the number of choices requested.

    Only the start of a very long answer is kept; `unread` of each choice is the number of characters dropped. Choices
    beyond `MAX_CHOICES` are dropped and counted in `unread` of the first.
    """

    def __init__(self, dialect: Dialect, expected: int) -> None:
        self._dialect = dialect
        self._expected = expected
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _Received] = {}
        self._argument_length = 0
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
        choice = self._choices.get(index)
        if choice is None:
            if len(self._choices) >= MAX_CHOICES:
                next(iter(self._choices.values())).unread += len(piece.text)
                return
            choice = self._choices[index] = _Received()
        if piece.repeats and choice.has_begun:
            return
        if piece.text:
            choice.has_begun = True
            self.length += choice.keep(choice.texts, piece.text, _KEPT - self.length)
        if piece.probabilities:
            choice.probability += sum(piece.probabilities)
            choice.tokens += len(piece.probabilities)
        choice.finish_reason = piece.finish_reason or choice.finish_reason
        for call, fragment in piece.arguments.items():
            choice.has_begun = True
            room = _KEPT - self._argument_length
            self._argument_length += choice.keep(choice.arguments[call], fragment, room)

    def choices(self, *, with_arguments: bool = False) -> tuple[Choice, ...]:
        """Return the choices received so far, in order, with the arguments of tool calls only on request."""
        received = sorted(self._choices.items())
        return tuple(
            self._dialect.choices([each.choice(index, self._reason, with_arguments) for index, each in received])
        )

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
        found = []
        for number, part in enumerate(self._given, start=1):
            kind: SourceKind = "document" if part.kind == "document" else "tool"
            id_, label = part.id or f"answer.{number}", part.id or part.title
            labels = tuple(filter(None, (part.id, part.title)))
            found.append(Source(id_, kind, part.text, title=part.title, labels=labels, label=label, url=part.url))
        return tuple(found)

    @property
    def finish_reasons(self) -> tuple[str, ...]:
        """The finish reasons received so far, in the order of the choices; choices without one are left out."""
        received = sorted(self._choices.items())
        found = tuple(each.finish_reason for _, each in received if each.finish_reason)
        return found or ((self._reason,) if self._reason else ())

    @property
    def is_finished(self) -> bool:
        """True when every choice, requested or received, has its finish reason."""
        return self._reason is not None or len(self.finish_reasons) >= max(self._expected, len(self._choices))

    @property
    def is_cut_short(self) -> bool:
        """True when nothing was received, or a choice received has no finish reason yet."""
        received = self._choices.values()
        return self._reason is None and (not received or any(each.finish_reason is None for each in received))

    @property
    def own_event(self) -> Body:
        """An event without content, to which the verdict on this answer can be added."""
        return self._dialect.own_event(self._head)


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None
