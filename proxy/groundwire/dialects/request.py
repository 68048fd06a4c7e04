"""A completion request: its body, shared by routing, forwarding and verification, and its verification options."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    JsonValue,
    Tag,
    ValidationError,
)
from pydantic_core import ErrorDetails

from groundwire.dialects.anthropic import MESSAGES
from groundwire.dialects.dialect import Answer, Dialect, is_url
from groundwire.dialects.jsonbytes import ValuesTooLarge, edited, loads_object
from groundwire.dialects.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from groundwire.dialects.openai import CHAT, COMPLETIONS, RESPONSES
from groundwire.domain import Choice, Exchange, Source
from groundwire.errors import BadRequest, BodyTooLarge, UnreadableBody
from groundwire.pipeline import Ask

Mode = Literal["sync", "async", "off"]
Detail = Literal["full", "summary", "none"]

MAX_VALUES = 20_000
"""Maximum number of JSON values in an object that is validated."""

HEADERS = {f"x-grounding-{name}": name for name in ("mode", "detail", "subject", "session")}


def _whole(value: Any) -> Any:
    """Convert 3.0 to 3: JSON does not distinguish them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class SourceIn(BaseModel):
    """Evidence that is not in the messages."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: str | None = None
    title: str | None = None
    text: str
    url: str | None = None
    metadata: dict[str, JsonValue] | None = None


_TAGS = ("(text)", "(object)")

Evidence = Annotated[
    Annotated[str, Tag(_TAGS[0])] | Annotated[SourceIn, Tag(_TAGS[1])],
    Discriminator(lambda value: _TAGS[0] if isinstance(value, str) else _TAGS[1]),
]
"""A source, as a plain text or as an object."""


def text_as_list(given: Any) -> Any:
    """Return a single text as a list of it."""
    return [given] if isinstance(given, str) else given


Sources = Annotated[
    tuple[Evidence, ...],
    FailFast(),
    Field(strict=False),
    BeforeValidator(text_as_list, json_schema_input_type=str | tuple[Evidence, ...]),
]
"""The sources of a request: one plain text, or a list of texts and objects."""


class Options(BaseModel):
    """The `grounding` object of a request; an unknown key or a value of the wrong type is rejected by name."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    mode: Mode | None = None
    detail: Detail = "full"
    sources: Sources = ()
    verifiers: tuple[Literal["quote", "numeric", "statement"], ...] | None = Field(default=None, strict=False)
    evidence_fields: Annotated[tuple[str, ...], FailFast()] = Field(default=(), strict=False)
    facts: dict[str, JsonValue] | None = None
    subject: str | None = None
    session: str | None = None
    samples: Annotated[int | None, BeforeValidator(_whole)] = Field(default=None, ge=3, le=5)
    corrective_retry: bool = False
    memory: bool = False
    check_tool_calls: bool = False
    offset_unit: Literal["codepoint", "utf16"] = "codepoint"


_TYPE_NAMES = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}


def read_options(body: Mapping[str, Any], headers: Mapping[str, str]) -> Options:
    """Parse the options of a request; the body overrides headers. Raises BadRequest, naming the invalid key."""
    given = body.get("grounding")
    if given is None:
        given = {}
    if not isinstance(given, dict):
        type_name = _TYPE_NAMES.get(type(given), "that")
        raise BadRequest(f"'grounding' must be an object, not {type_name}", param="grounding")
    twins = {name: headers[header] for header, name in HEADERS.items() if header in headers}
    if not given and not twins:
        return _DEFAULT
    if has_over(given, MAX_VALUES):
        raise BadRequest(f"'grounding' must not hold over {MAX_VALUES:,} values", param="grounding")
    if (unknown := _unknown_key(given)) is not None:
        name, operator = f"grounding.{unknown}", "there is an unknown key in 'grounding'"  # it may be any text
        raise BadRequest(f"'{name}' is not a key of 'grounding'", param=name, operator=operator)
    try:
        return Options.model_validate({**twins, **given})
    except ValidationError as error:
        first = error.errors()[0]
        path = path_of(first)
        from_header = len(first["loc"]) == 1 and first["loc"][0] in twins and first["loc"][0] not in given
        name = f"x-grounding-{path}" if from_header else f"grounding.{path}"
        complaint = f"'{name}': {in_json_words(first['msg'])}"
        raise BadRequest(complaint + _given(first), param=name, operator=complaint) from error


def _unknown_key(given: Mapping[str, Any]) -> str | None:
    """Return the path of the first key that is not known, in `grounding` or in its sources."""
    if (unknown := next((key for key in given if key not in Options.model_fields), None)) is not None:
        return unknown
    sources = given.get("sources")
    for at, source in enumerate(sources if isinstance(sources, list) else ()):
        for key in source if isinstance(source, dict) else ():
            if key not in SourceIn.model_fields:
                return f"sources.{at}.{key}"
    return None


def has_over(value: Any, limit: int) -> bool:
    """Return whether a JSON value contains more than `limit` values."""
    waiting, count = [value], 0
    while waiting:
        each = waiting.pop()
        if isinstance(each, (dict, list)):
            count += len(each)
            if count > limit:
                return True
            waiting += each.values() if isinstance(each, dict) else each
    return False


def _given(details: ErrorDetails) -> str:
    """Quote an invalid value if it is short; a long one may be private text."""
    given = details["input"]
    return f" (not '{given}')" if isinstance(given, str) and len(given) <= 40 else ""


def in_json_words(complaint: str) -> str:
    """Translate a message of pydantic into the terms of JSON."""
    complaint = re.sub(r" or instance of \w+", "", complaint)
    return complaint.replace("tuple", "array").replace("Tuple", "Array").replace("dictionary", "object")


def path_of(details: ErrorDetails) -> str:
    """Return the keys and indices that lead to an invalid value, joined by dots."""
    steps = details["loc"]
    tags = {at for at, step in enumerate(steps) if at and isinstance(steps[at - 1], int) and step in _TAGS}
    return ".".join(str(step) for at, step in enumerate(steps) if at not in tags)


def explicit_sources(options: Options, documents: Any) -> tuple[Source, ...]:
    """Return the evidence given apart from the messages: `grounding.sources`, then `documents`.

    A document is a string or an object; Cohere's `data` and vLLM's `text`, `content` or `snippet` are understood.
    """
    given = [source_of(item, number) for number, item in enumerate(options.sources, start=1)]
    for n, item in enumerate(documents if isinstance(documents, list) else (), start=1):
        if isinstance(item, str):
            given.append(_source(f"document-{n}", "document", item, {}))
        elif isinstance(item, dict):
            fields = {**item, **item["data"]} if isinstance(item.get("data"), dict) else item
            text = next((fields[key] for key in _TEXT_KEYS if isinstance(fields.get(key), str)), None)
            if text is None and isinstance(item.get("data"), str):
                text = item["data"]
            if text is not None:
                given.append(_source(f"document-{n}", "document", text, fields))
    return tuple(given)


def source_of(given: str | SourceIn, number: int) -> Source:
    """Return the source that a request gives explicitly, named after its number if it has no id."""
    if isinstance(given, str):
        return _source(f"source-{number}", "source", given, {})
    return _source(f"source-{number}", "source", given.text, given.model_dump())


_DEFAULT = Options()
_TEXT_KEYS = ("text", "content", "snippet", "page_content", "contents", "body")
_LABEL_KEYS = ("id", "source", "file_name", "filename", "file_path", "path")
_URL_KEYS = ("url", "link", "href", "source")


def _source(default_id: str, kind: Literal["source", "document"], text: str, fields: Mapping[str, Any]) -> Source:
    """Build a source, named by its fields or by their `metadata`, the convention of LangChain and LlamaIndex."""
    metadata = fields.get("metadata")
    named = (
        {**metadata, **{key: each for key, each in fields.items() if each is not None}}
        if isinstance(metadata, dict)
        else fields
    )
    number = default_id.rpartition("-")[2]
    id_, title = _string(fields.get("id")), _string(named.get("title"))
    label = next((found for key in _LABEL_KEYS if (found := _string(named.get(key)))), title)
    url = next((found for key in _URL_KEYS if is_url(found := _string(named.get(key)))), None)
    labels = tuple(dict.fromkeys(each for each in (id_, number, title, label) if each))
    return Source(id=id_ or default_id, kind=kind, text=text, title=title, labels=labels, label=label, url=url)


def _string(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) and value else None


@dataclass(frozen=True, slots=True)
class Request:
    """A completion request in some dialect. `raw` is its original body, `body` the decoded one.

    `model` is empty when the request names none, as with stored prompts. `tenant` owns everything stored about it.
    `warnings` has one sentence for each part that is not read; `question` is set where it is not among the messages.
    """

    dialect: Dialect
    raw: bytes
    body: Mapping[str, Any]
    model: str
    options: Options
    tenant: str = ""
    warnings: tuple[str, ...] = ()
    question: str = ""

    @property
    def expected_choices(self) -> int:
        """The number of choices that the answer will have."""
        return self.dialect.expected(self.body)

    def outgoing(self, model: str, forwards_documents: bool) -> bytes:
        """Return the body for an upstream that calls the model `model`: the original less Groundwire's keys."""
        ours = {"grounding"} if forwards_documents else {"grounding", "documents"}
        return outgoing_body(self.raw, self.body, model, ours)

    def exchange(self) -> Exchange:
        """Return the parts of the request that verification reads."""
        given = self.dialect.temperature(self.body)
        return Exchange(
            messages=self.dialect.messages(self.body),
            sources=explicit_sources(self.options, self.body.get("documents")),
            temperature=float(given) if type(given) in (int, float) and 0 <= given <= 100 else None,
        )

    @property
    def ask(self) -> Ask:
        """The checks requested in addition to those of claims."""
        return Ask(self.options.evidence_fields, self.dialect.schema(self.body), self.question)

    def examinable(self, answer: Answer) -> tuple[Choice, ...]:
        """Return the choices of an answer, with the arguments of tool calls only if these are to be checked."""
        return answer.choices(with_arguments=self.options.check_tool_calls)


def outgoing_body(raw: bytes, body: Mapping[str, Any], model: str, ours: Collection[str] = ("grounding",)) -> bytes:
    """Return the bytes of a body without the members in `ours`, for an upstream that calls the model `model`."""
    dropped = [name for name in ours if name in body]
    values = {} if model == model_of(body) else {"model": model}
    return edited(raw, dropped, values) if dropped or values else raw


def read_request(dialect: Dialect, raw: bytes, headers: Mapping[str, str], tenant: str = "") -> Request:
    """Parse a request. Raises UnreadableBody when it is not a JSON object, BadRequest when an option is invalid."""
    body = read_object(raw)
    if has_over(body.get("documents"), MAX_VALUES):
        raise BadRequest(f"'documents' must not hold over {MAX_VALUES:,} values", param="documents")
    warnings = dialect.unread(body)
    if not isinstance(body.get("documents"), list | None):
        warnings = ("documents: not an array, so not read", *warnings)
    return Request(dialect, raw, body, model_of(body), read_options(body, headers), tenant, warnings)


def model_of(body: Mapping[str, Any]) -> str:
    """Return the model that a body names; an empty string if none."""
    model = body.get("model")
    return model if isinstance(model, str) else ""


def read_object(raw: bytes, skipped: Collection[str] = ()) -> dict[str, Any]:
    """Parse a body as a JSON object. The members in `skipped` may be left out of a large one.

    Raises UnreadableBody, and BodyTooLarge when it holds too many values for its size.
    """
    try:
        body = loads_object(raw, skipped)
    except ValuesTooLarge as error:
        raise BodyTooLarge(f"The body of your request cannot be read: {error}.") from error
    except ValueError as error:
        raise UnreadableBody("We could not parse the JSON body of your request. It is not valid JSON.") from error
    if not isinstance(body, dict):
        raise UnreadableBody("The body of your request must be a JSON object.")
    return body


DIALECTS: tuple[Dialect, ...] = (CHAT, COMPLETIONS, RESPONSES, MESSAGES, OLLAMA_CHAT, OLLAMA_GENERATE)
