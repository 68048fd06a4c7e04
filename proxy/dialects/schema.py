"""The report as a schema, for those who read the OpenAPI document; `report.render` makes what it describes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from proxy.dialects.checks import AnswerCheck
from proxy.dialects.options import Options
from proxy.types import AnswerVerdict, ClaimKind, Label, Match, SourceKind, Status

Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Told(BaseModel):
    """A part of a report. Later versions may tell more."""

    model_config = ConfigDict(extra="allow")


class Citation(Told):
    """Where evidence stands: a half-open span of the source's original text."""

    source: str
    start: int
    end: int
    text: str
    score: Share
    match: Match


class ClaimConfidence(Told):
    """The four parts of the confidence in a verdict; null where a part is not known."""

    retrieval: Share | None
    source: Share | None
    extraction: Share | None
    consistency: Share | None


class Claim(Told):
    """One assertion of the answer with its verdict; `budget` is there when a model was asked about it.

    `confidence` is that in the verdict. `flags` are those that the claim raises besides its label.
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
    """What was found in one choice."""

    index: int
    verdict: AnswerVerdict
    score: Share | None
    claims: list[Claim] = []


class ReportSource(Told):
    """A source that was used: its kind, its place and its size, without its text.

    `label` is the id or name that the request gives it; title and URL are those of the request, too.
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
    """How many tokens of its prompt the model server read (null: it does not say), and how many there are at least."""

    reported_tokens: int | None
    at_least_tokens: int
    truncated: bool


class ReportAttempt(Told):
    """An upstream that was asked for the answer, where that took more than asking one; the last of them gave it."""

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
    """What the samples say of one claim: 1 the same, ½ nothing of the kind, 0 otherwise, null where there is none."""

    choice: int
    id: str
    votes: list[Share | None]
    variance: Share | None


class SelfConsistency(Told):
    """How far further answers to the same request agree with this one; while pending, only what was asked."""

    status: Literal["pending", "complete", "failed"]
    samples: int
    temperatures: list[float]
    answered: int | None = None
    risk: Share | None = None
    claims: list[SampledClaim] | None = None
    usage: dict[str, int] | None = None
    reasons: list[str] | None = None


class GroundingReport(Told):
    """All verdicts on one answer and their aggregate. A report that is not made yet holds the first lines only."""

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
    """An answer to be verified, with what else `grounding` takes beside it."""


class FoundClaim(Told):
    """One assertion of a text; `skip_reason` says why it would not be checked."""

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
    """What became of the quotations of a JSON answer: those accepted by field, counts, violations of its shape."""

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
    """A result that may be completed later: by its `id`, where it was `deferred`."""

    id: str | None = None
    status: Literal["deferred", "partial", "complete"] | None = None


class AuditedTrace(Deferrable):
    """An audited trace; `post_hoc` tells whether its answer follows, where there is one."""

    sound: bool
    counts: dict[str, int]
    steps: list[TraceStep]
    post_hoc: dict[str, Any] | None = None


class DecidedFact(Told):
    """What the memory gate decided on a fact; `id` is null where it is not kept."""

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
    """What the memory gate decided on some facts."""

    subject: str | None
    accepted: int
    rejected: int
    facts: list[DecidedFact]


class KeptFact(Told):
    """A fact in memory; `at` is in Unix seconds, `is_source` says whether it may serve as evidence."""

    id: str
    text: str
    confidence: Share
    at: float
    is_source: bool


class KeptFacts(Told):
    """What memory holds of a subject."""

    subject: str
    facts: list[KeptFact]


class Alive(Told):
    """That the process lives."""

    status: Literal["ok"]


class Readiness(Told):
    """Whether requests are served, and which parts work less than fully, each with its reason."""

    status: str
    degraded: list[dict[str, str]]


class Failure(BaseModel):
    """An error in OpenAI's shape."""

    message: str
    type: str
    param: str | None
    code: str | None


class FailureBody(BaseModel):
    """What every error is told as."""

    error: Failure
