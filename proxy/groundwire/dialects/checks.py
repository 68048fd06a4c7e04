"""Request and response shapes of the check endpoints, and the JSON Schema of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, FailFast, Field, JsonValue, TypeAdapter, ValidationError

from groundwire.dialects.jsonbytes import dumps
from groundwire.dialects.openai import CHAT
from groundwire.dialects.request import (
    MAX_VALUES,
    Evidence,
    Options,
    Request,
    Sources,
    explicit_sources,
    has_over,
    in_json_words,
    path_of,
    read_object,
    read_request,
)
from groundwire.domain import Claim, ClaimKind, Source
from groundwire.errors import BadRequest
from groundwire.report import Violation, render_found
from groundwire.report_schema import (
    ClaimBudget,
    GroundingReport,
    ReportCitation,
    ReportClaim,
    ReportQuotes,
    ReportSchema,
    Share,
)

M = TypeVar("M", bound="Check")

_LONGEST = 20_000  # characters of one claim, fact or step; longer text should be verified as an answer

Assertion = Annotated[str, Field(min_length=1, max_length=_LONGEST)]
Confidence = Annotated[float, Field(ge=0.0, le=1.0, strict=False)]

# `evidence` and `context` are older names of `sources`, and `fields` is one of `evidence_fields`
_OR_EVIDENCE = AliasChoices("sources", "evidence")
_OR_CONTEXT = AliasChoices("sources", "context")
_OR_FIELDS = AliasChoices("evidence_fields", "fields")


class Check(BaseModel):
    """Base of check requests. Unknown keys and values of a wrong type are rejected; the error names the key."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ClaimCheck(Check):
    """One claim and its sources. `confidence` is the probability that the claim must reach given these."""

    claim: Assertion
    sources: Annotated[Sources, Field(validation_alias=_OR_EVIDENCE)]
    confidence: Confidence | None = None
    model: str = ""


class FactIn(Check):
    """A fact and its evidence: its own `sources`, and the shared ones with the ids in `cites`.

    If both are empty, it is all of the shared sources.
    """

    text: Assertion
    confidence: Confidence | None = None
    sources: Annotated[Sources, Field(validation_alias=_OR_EVIDENCE)] = ()
    cites: Annotated[tuple[str, ...], FailFast(), Field(strict=False)] = ()


class MemoryCheck(Check):
    """Facts for the memory of a subject, with shared sources; without a subject they are judged but not stored."""

    facts: Annotated[tuple[FactIn, ...], FailFast(), Field(strict=False, min_length=1, max_length=100)]
    subject: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    sources: Annotated[Sources, Field(validation_alias=_OR_EVIDENCE)] = ()
    model: str = ""


class TraceCheck(Check):
    """Reasoning steps, the sources for them, and the answer that they should lead to."""

    steps: Annotated[tuple[Assertion, ...], FailFast(), Field(strict=False, min_length=1, max_length=200)]
    sources: Annotated[Sources, Field(validation_alias=_OR_CONTEXT)] = ()
    answer: Assertion | None = None
    question: Annotated[str, Field(max_length=_LONGEST)] = ""
    model: str = ""


class TextCheck(Check):
    """A text to extract claims from."""

    text: str


class EvidenceCheck(Check):
    """A JSON answer, its fields that hold quotations, and the sources to search for these."""

    answer: str | dict[str, JsonValue]
    evidence_fields: Annotated[
        tuple[str, ...], FailFast(), Field(strict=False, min_length=1, validation_alias=_OR_FIELDS)
    ]
    sources: Sources


class AnswerCheck(Check):
    """An answer and its context; options that other requests have in `grounding` are keys of this object.

    `json_schema` is the schema that the answer should conform to.
    """

    answer: str
    question: str = ""
    messages: Annotated[tuple[dict[str, JsonValue], ...], FailFast(), Field(strict=False)] = ()
    documents: JsonValue = None
    json_schema: dict[str, JsonValue] | None = None
    model: str = ""


def read_check(shape: type[M], raw: bytes) -> M:
    """Parse a body of this shape. Raises BadRequest, naming the invalid key."""
    return _validated(shape, _read(raw))


def _read(raw: bytes) -> dict[str, Any]:
    body = read_object(raw)
    if has_over(body, MAX_VALUES):
        raise BadRequest(f"The body of your request must not hold over {MAX_VALUES:,} values.")
    return body


def read_answer_check(raw: bytes, headers: Mapping[str, str], tenant: str = "") -> tuple[AnswerCheck, Request]:
    """Parse an answer to be verified, and build the equivalent chat request. Raises BadRequest."""
    body = _read(raw)
    own = {key: value for key, value in body.items() if key in AnswerCheck.model_fields}
    check = _validated(AnswerCheck, own)
    options = {key: value for key, value in body.items() if key not in own}
    request: dict[str, Any] = {"messages": list(check.messages), "grounding": options}
    request |= {"model": check.model} if check.model else {}
    request |= {} if check.documents is None else {"documents": check.documents}
    request |= {} if check.json_schema is None else {"response_format": _response_format(check.json_schema)}
    try:
        read = replace(read_request(CHAT, dumps(request), headers, tenant), question=check.question)
    except BadRequest as error:
        raise _as_own(error) from error
    if read.options.samples is not None and not (check.model and check.messages):
        raise BadRequest("'samples' needs 'model' and 'messages', as that request is sent again", param="samples")
    if read.options.corrective_retry and not (check.model and check.messages):
        message = "'corrective_retry' needs 'model' and 'messages', as that request is sent again"
        raise BadRequest(message, param="corrective_retry")
    return check, read


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the member of a chat request that demands an answer with this JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _as_own(error: BadRequest) -> BadRequest:
    """Return an error about a member of `grounding` as one about the key of the body that it was taken from."""
    if not (error.param or "").startswith("grounding."):
        return error
    path = str(error.param).removeprefix("grounding.")
    if path not in Options.model_fields and "." not in path:
        return _unknown(path)
    own = f"'{error.param}'", f"'{path}'"
    return BadRequest(
        str(error).replace(*own).replace("a key of 'grounding'", "a key of this endpoint"),
        param=path,
        operator=error.operator.replace(*own),
    )


def sources_of(evidence: Sequence[Evidence]) -> tuple[Source, ...]:
    """Convert evidence to sources; those without an id get one from their position, such as "source-1"."""
    return explicit_sources(Options(sources=tuple(evidence)), None)


def render_claims(claims: Sequence[Claim]) -> dict[str, Any]:
    """Render claims without verdicts."""
    return {"offset_unit": "codepoint", "claims": [render_found(claim) for claim in claims]}


def render_violations(violations: Sequence[Violation]) -> dict[str, Any]:
    """Render the violations of a JSON answer whose evidence does not have the declared shape."""
    listed = [each.to_dict() for each in violations]
    return {"accepted": {}, "schema": {"violations": listed}}


def _validated(shape: type[M], body: Mapping[str, Any]) -> M:
    if (unknown := next((key for key in body if key not in _names(shape)), None)) is not None:
        raise _unknown(unknown)
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        path = path_of(first)
        if first["type"] == "extra_forbidden":
            raise _unknown(path) from error
        raise BadRequest(f"'{path}': {in_json_words(first['msg'])}", param=path) from error


def _names(shape: type[Check]) -> set[str | int]:
    """Return the keys that a body of this shape may have."""
    aliases = (field.validation_alias for field in shape.model_fields.values())
    paths = [path for each in aliases if isinstance(each, AliasChoices) for path in each.convert_to_aliases()]
    return {*shape.model_fields, *(path[0] for path in paths)}


def _unknown(path: str) -> BadRequest:
    operator = "there is an unknown key"  # logged instead of the key, which may be any text
    return BadRequest(f"'{path}' is no key of this endpoint", param=path, operator=operator)


_SCHEMA_URI = "https://json-schema.org/draft/2020-12/schema"


def report_json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a report."""
    found = TypeAdapter(GroundingReport).json_schema(mode="serialization")
    return {"$schema": _SCHEMA_URI, **found}


class Result(BaseModel):
    """A response. Its schema is open: later versions may add members."""


class VerifyBody(AnswerCheck, Options):
    """An answer to be verified, with the options of `grounding` in the same object."""


class FoundClaim(Result):
    """One assertion of a text; `skip_reason` explains why it would not be checked."""

    id: str
    text: str
    start: int
    end: int
    kind: ClaimKind
    cited: list[str]
    stated_confidence: Share
    pointer: str | None = None
    skip_reason: str | None = None


class FoundClaims(Result):
    """The claims of a text, without verdicts."""

    offset_unit: Literal["codepoint"]
    claims: list[FoundClaim]


class QuotesFound(Result):
    """The quotations of a JSON answer: those accepted, by field, counts, and violations of its shape."""

    accepted: dict[str, list[str]]
    quotes: ReportQuotes | None = None
    schema_: Annotated[ReportSchema, Field(alias="schema")]


class TraceStep(Result):
    """One step of a trace with its verdict."""

    id: str
    text: str
    status: Literal["ENTAILED", "CONTRADICTED", "NOT_IN_CONTEXT", "UNVERIFIABLE"]
    reason: str
    citations: list[ReportCitation]
    budget: ClaimBudget | None = None


class Deferrable(Result):
    """A result that may be completed later: if it is `deferred`, fetch it by its `id`."""

    id: str | None = None
    status: Literal["deferred", "partial", "complete"] | None = None


class AuditedTrace(Deferrable):
    """An audited trace; `post_hoc` reports whether its answer follows, if there is one."""

    sound: bool
    counts: dict[str, int]
    steps: list[TraceStep]
    post_hoc: dict[str, Any] | None = None


class DecidedFact(Result):
    """The decision of the memory gate on a fact; `id` is null if it is not stored."""

    id: str | None
    text: str
    status: Literal["accepted", "rejected"]
    reason: str | None = None
    grounding: str
    confidence: Share | None
    stated_confidence: Share
    stored: bool
    claim: ReportClaim


class DecidedFacts(Deferrable):
    """The decisions of the memory gate on some facts."""

    subject: str | None
    accepted: int
    rejected: int
    facts: list[DecidedFact]


class StoredFact(Result):
    """A fact in memory; `at` is in Unix seconds, `is_source` marks facts that may serve as evidence."""

    id: str
    text: str
    confidence: Share
    at: float
    is_source: bool


class StoredFacts(Result):
    """The stored facts of a subject."""

    subject: str
    facts: list[StoredFact]


class Alive(Result):
    """The liveness of the process."""

    status: Literal["ok"]


class Readiness(Result):
    """The readiness of the server, and each degraded part with its reason."""

    status: str
    degraded: list[dict[str, str]]


class Failure(BaseModel):
    """An error in OpenAI's shape."""

    message: str
    type: str
    param: str | None
    code: str | None


class FailureBody(BaseModel):
    """The body of every error response."""

    error: Failure
