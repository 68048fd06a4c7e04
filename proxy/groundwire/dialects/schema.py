"""The schemas of all responses for the OpenAPI document, and the JSON Schema of the report."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter

from groundwire.dialects.checks import AnswerCheck
from groundwire.dialects.options import Options
from groundwire.domain import ClaimKind
from groundwire.report_schema import (
    ClaimBudget,
    GroundingReport,
    ReportCitation,
    ReportClaim,
    ReportQuotes,
    ReportSchema,
    Share,
)

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
