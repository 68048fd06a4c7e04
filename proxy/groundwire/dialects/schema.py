"""The schema of the report for the OpenAPI document; `report.render` produces the values it describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from groundwire.dialects.checks import AnswerCheck
from groundwire.dialects.options import Options
from groundwire.domain import AnswerVerdict, ClaimKind, Label, Match, SourceKind, Status

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Told(BaseModel):
    """A part of a report. Later versions may add members."""

    model_config = ConfigDict(extra="allow")


class Citation(Told):
    """A piece of evidence: a half-open span of the source's original text."""

    source: str
    start: int
    end: int
    text: str
    score: Share
    match: Match


class ClaimConfidence(Told):
    """The four components of the confidence in a verdict; null where one is not known."""

    retrieval: Share | None
    source: Share | None
    extraction: Share | None
    consistency: Share | None


class Claim(Told):
    """One assertion of the answer with its verdict; `budget` is present when a model was asked about it.

    `confidence` is that of the verdict. `flags` are those that the claim raises in addition to its label.
    """

    id: str
    text: str
    start: int
    end: int
    pointer: str | None = None
    kind: ClaimKind
    label: Label
    score: Share | None
    confidence: Share | None
    confidence_parts: ClaimConfidence | None = None
    verifier: str | None
    method: str
    reason: str
    skip_reason: str | None = None
    flags: list[str] = []
    citations: list[Citation]
    budget: dict[str, Any] | None = None


class ReportChoice(Told):
    """The findings on one choice."""

    index: int
    verdict: AnswerVerdict
    score: Share | None
    claims: list[Claim] = []


class ReportSource(Told):
    """A source that was used: its kind, position and size, without its text.

    `label` is the id or name that the request gives it; title and URL are from the request, too.
    """

    id: str
    label: str | None = None
    kind: SourceKind
    message_index: int | None = None
    part_index: int | None = None
    title: str | None = None
    url: str | None = None
    chars: int
    sha256: str


class Prompt(Told):
    """The number of prompt tokens that the model server reports (null: none), and the least possible number."""

    reported_tokens: int | None
    at_least_tokens: int
    truncated: bool


class ReportAttempt(Told):
    """An upstream that was tried, listed if there was more than one; the last one answered."""

    upstream: str
    model: str
    outcome: str


class FlaggedNumber(Told):
    """A number of a claim that was checked and is not supported; the value of a date is its ordinal day."""

    choice: int
    id: str
    text: str
    type: str
    value: float


class NumericCounts(Told):
    """The numbers of the answer, one by one; `unverified_claims` were checked and are not supported."""

    total_claims: int
    verified_claims: int
    unverified_claims: int
    not_checked: int
    confidence_adjustment: float
    flagged: list[FlaggedNumber]


class SampledClaim(Told):
    """Agreement of the samples with one claim: 1 the same, ½ unrelated, 0 otherwise, null without a sample."""

    choice: int
    id: str
    votes: list[Share | None]
    variance: Share | None


class SelfConsistency(Told):
    """The agreement of further answers to the same request with this one; while pending, only the parameters."""

    status: Literal["pending", "complete", "failed"]
    samples: int
    temperatures: list[float]
    answered: int | None = None
    risk: Share | None = None
    claims: list[SampledClaim] | None = None
    usage: dict[str, int] | None = None
    reasons: list[str] | None = None


class GroundingReport(Told):
    """All verdicts on one answer and their aggregate. A pending report has only the first members."""

    id: str
    version: int
    status: Status
    verdict: AnswerVerdict
    score: Share | None
    offset_unit: Literal["codepoint", "utf16"]
    flags: list[str]
    warnings: list[str]
    coverage: dict[str, float] | None = None
    confidence: dict[str, Any] | None = None
    risk: dict[str, Any] | None = None
    quality: Share | None = None
    consistency: dict[str, Any] | None = None
    sources: list[ReportSource] = []
    prompt: Prompt | None = None
    choices: list[ReportChoice] = []
    quotes: dict[str, Any] | None = None
    correction: dict[str, Any] | None = None
    schema_: Annotated[dict[str, list[dict[str, Any]]] | None, Field(alias="schema")] = None
    numeric: NumericCounts | None = None
    self_consistency: SelfConsistency | None = None
    stages: list[dict[str, Any]] = []
    cache: dict[str, Any] | None = None
    timing_ms: dict[str, float] = {}
    degraded: list[dict[str, str]] = []
    attempts: list[ReportAttempt] = []
    config: str = ""


class VerifyBody(AnswerCheck, Options):
    """An answer to be verified, with the options of `grounding` in the same object."""


class FoundClaim(Told):
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


class FoundClaims(Told):
    """The claims of a text, without verdicts."""

    offset_unit: Literal["codepoint"]
    claims: list[FoundClaim]


class QuotesFound(Told):
    """The quotations of a JSON answer: those accepted, by field, counts, and violations of its shape."""

    accepted: dict[str, list[str]]
    quotes: dict[str, Any] | None = None
    schema_: Annotated[dict[str, list[dict[str, Any]]], Field(alias="schema")]


class TraceStep(Told):
    """One step of a trace with its verdict."""

    id: str
    text: str
    status: Literal["ENTAILED", "CONTRADICTED", "NOT_IN_CONTEXT", "UNVERIFIABLE"]
    reason: str
    citations: list[Citation]
    budget: dict[str, Any] | None = None


class Deferrable(Told):
    """A result that may be completed later: if it is `deferred`, fetch it by its `id`."""

    id: str | None = None
    status: Literal["deferred", "partial", "complete"] | None = None


class AuditedTrace(Deferrable):
    """An audited trace; `post_hoc` reports whether its answer follows, if there is one."""

    sound: bool
    counts: dict[str, int]
    steps: list[TraceStep]
    post_hoc: dict[str, Any] | None = None


class DecidedFact(Told):
    """The decision of the memory gate on a fact; `id` is null if it is not stored."""

    id: str | None
    text: str
    status: Literal["accepted", "rejected"]
    reason: str | None = None
    grounding: str
    confidence: Share | None
    stated_confidence: Share
    stored: bool
    claim: Claim


class DecidedFacts(Deferrable):
    """The decisions of the memory gate on some facts."""

    subject: str | None
    accepted: int
    rejected: int
    facts: list[DecidedFact]


class KeptFact(Told):
    """A fact in memory; `at` is in Unix seconds, `is_source` marks facts that may serve as evidence."""

    id: str
    text: str
    confidence: Share
    at: float
    is_source: bool


class KeptFacts(Told):
    """The stored facts of a subject."""

    subject: str
    facts: list[KeptFact]


class Alive(Told):
    """The liveness of the process."""

    status: Literal["ok"]


class Readiness(Told):
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
