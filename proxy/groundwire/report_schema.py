"""The types of a report in the wire format: of `Report.to_dict()`, the OpenAPI document and the published JSON Schema.

Members that are absent in some reports are `NotRequired`; null is the value of a number that is not known. Later
versions may add members.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from groundwire.domain import (
    AnswerVerdict,
    BudgetStatus,
    Cause,
    ClaimKind,
    ConfidenceLevel,
    ContradictionKind,
    Flag,
    Label,
    Match,
    Method,
    Severity,
    SourceKind,
    Status,
)

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=0)]
Milliseconds = Annotated[float, Field(ge=0.0)]
Digest = Annotated[str, Field(min_length=64, max_length=64)]
Resolution = Annotated[float, Field(gt=0.0, le=0.5)]
Interval = Annotated[list[Share], Field(min_length=2, max_length=2)]


class ReportCitation(TypedDict):
    """A piece of evidence: a half-open span of the source's original text, that text, and the quality of the match."""

    source: str
    start: Count
    end: Count
    text: str
    score: Share
    match: Match


class ConfidenceComponents(TypedDict):
    """The four components of a confidence; null where one is not known."""

    retrieval: Share | None
    source: Share | None
    extraction: Share | None
    consistency: Share | None


class ClaimBudget(TypedDict):
    """The information budget of a claim, in bits.

    `p1` is the probability of the claim with the context and `p0` without the cited evidence; null if not known.
    `budget_gap` is positive exactly when `p1` is below `target`. Bits are clipped to `resolution`. `decorative` are
    the indices of citations that change nothing. `missing` is the cause if the status is "unavailable".
    """

    p0: Share | None
    p1: Share | None
    required_bits: float | None
    observed_bits: float | None
    budget_gap: float | None
    status: BudgetStatus
    target: Share
    resolution: Resolution | None
    p1_interval: NotRequired[Interval]
    p0_interval: NotRequired[Interval]
    method: NotRequired[Method]
    decorative: NotRequired[list[Count]]
    missing: NotRequired[Cause]


class ReportClaim(TypedDict):
    """One assertion of the answer with its verdict, at the half-open span from `start` to `end` of the answer.

    `pointer` is the JSON pointer of its field, if the answer is JSON. `score` is the strength of the support and
    `confidence` that of the verdict; both are null if the claim was not checked, with the reason in `skip_reason` if it
    asserts nothing. `flags` are those that it raises in addition to its label. `budget` is present if it was measured.
    """

    id: str
    text: str
    start: Count
    end: Count
    pointer: NotRequired[str]
    kind: ClaimKind
    label: Label
    score: Share | None
    confidence: Share | None
    confidence_parts: NotRequired[ConfidenceComponents]
    stated_confidence: Share
    verifier: str | None
    method: str
    reason: str
    skip_reason: NotRequired[str]
    flags: NotRequired[list[Flag]]
    citations: list[ReportCitation]
    budget: NotRequired[ClaimBudget]


class ReportChoice(TypedDict):
    """The verdicts on one choice; a summary has no claims. `score` is supported / checked, null if none was checked."""

    index: int
    verdict: AnswerVerdict
    score: Share | None
    claims: NotRequired[list[ReportClaim]]


class ReportCoverage(TypedDict):
    """The extent of verification: counts of claims, and shares of the answer's and the context's characters."""

    claims_total: Count
    claims_checked: Count
    claims_skipped: Count
    answer_examined: Share
    context_examined: Share


class ReportConfidence(TypedDict):
    """The confidence in the report, its level, and the recommendation that follows from it."""

    score: Share
    level: ConfidenceLevel
    recommendation: str
    parts: ConfidenceComponents


class ReportRisk(TypedDict):
    """The risk of acting on the answer, and its factors, the heaviest first."""

    score: Share
    level: Severity
    factors: list[str]
    recommendation: str


class ReportSource(TypedDict):
    """A source that was used: its kind, position and size, without its text.

    `label` is the id or name that the request gives it; title and URL are from the request, too.
    """

    id: str
    label: NotRequired[str]
    kind: SourceKind
    message_index: NotRequired[Count]
    part_index: NotRequired[Count]
    title: NotRequired[str]
    url: NotRequired[str]
    chars: Count
    sha256: Digest


class ReportPrompt(TypedDict):
    """The number of prompt tokens that the model server reports (null: none), and the least possible number."""

    reported_tokens: Count | None
    at_least_tokens: Count
    truncated: bool


class ReportContradiction(TypedDict):
    """A contradiction between a claim and the answer `exchange`, given at Unix time `at`, about the same subject."""

    choice: int
    claim: str
    statement: str
    earlier: str
    exchange: str
    at: Annotated[float, Field(ge=0.0)]
    kind: ContradictionKind
    severity: Severity
    reason: str


class ReportConsistency(TypedDict):
    """The agreement of the answer with earlier answers about its subject; null if there are none to compare."""

    score: Share | None
    contradictions: list[ReportContradiction]


class ReportQuotes(TypedDict):
    """The counts of quotations: extracted, found in a source, and rejected in total and by field."""

    extracted: Count
    validated: Count
    rejected: Count
    rejected_by_field: dict[str, Count]


class SchemaViolation(TypedDict):
    """A place of a JSON answer that violates its schema."""

    field: str
    index: NotRequired[Count]
    expected: str
    found: str


class ReportSchema(TypedDict):
    """The violations of the schema of a JSON answer."""

    violations: list[SchemaViolation]


class ReportFlaggedNumber(TypedDict):
    """A number of a claim that was checked and is not supported; the value of a date is its ordinal day."""

    choice: int
    id: str
    text: str
    type: str
    value: float


class ReportNumbers(TypedDict):
    """The numbers of the answer, one by one; `unverified_claims` were checked and are not supported."""

    total_claims: Count
    verified_claims: Count
    unverified_claims: Count
    not_checked: Count
    confidence_adjustment: Annotated[float, Field(ge=-1.0, le=0.0)]
    flagged: list[ReportFlaggedNumber]


class ReportCache(TypedDict):
    """The verdicts taken from the cache and newly computed, and the age in seconds of the oldest cached one."""

    hits: Count
    misses: Count
    oldest_s: Annotated[float, Field(ge=0.0)] | None


class TokenUsage(TypedDict):
    """The tokens of extra calls, as far as the server reports them."""

    calls: NotRequired[Count]
    prompt_tokens: Count
    completion_tokens: Count


class ReportCorrection(TypedDict):
    """A second answer, requested because the first one violates its schema; while pending, only its status."""

    status: Literal["pending", "complete", "failed"]
    answer: NotRequired[str | None]
    violations: NotRequired[list[SchemaViolation]]
    usage: NotRequired[TokenUsage]
    reason: NotRequired[str]


class ReportSampledClaim(TypedDict):
    """Agreement of the samples with one claim: 1 the same, ½ unrelated, 0 otherwise, null without a sample."""

    choice: int
    id: str
    votes: list[Share | None]
    variance: Share | None


class ReportSelfConsistency(TypedDict):
    """The agreement of further answers to the same request with this one; while pending, only the parameters."""

    status: Literal["pending", "complete", "failed"]
    samples: Count
    temperatures: list[Annotated[float, Field(ge=0.0)]]
    answered: NotRequired[Count]
    risk: NotRequired[Share | None]
    claims: NotRequired[list[ReportSampledClaim]]
    usage: NotRequired[TokenUsage]
    reasons: NotRequired[list[str]]


class ReportStage(TypedDict):
    """The number of claims that reached one stage of verification, and its cost."""

    stage: Literal["deterministic", "embedded", "judge", "model"]
    claims: Count
    calls: Count
    prompt_tokens: Count
    completion_tokens: Count
    ms: Milliseconds


class DegradedVerifier(TypedDict):
    """A verifier that could not do all of its work, and the reason."""

    verifier: str
    reason: str


class ReportAttempt(TypedDict):
    """An upstream that was tried, listed if there was more than one; the last one answered."""

    upstream: str
    model: str
    outcome: str


class GroundingReport(TypedDict):
    """All verdicts on one answer and their aggregate.

    `score` is supported / checked, null if nothing was checked. A pending report has only the members up to `warnings`.
    """

    id: str
    version: Literal[1]
    status: Status
    verdict: AnswerVerdict
    score: Share | None
    offset_unit: Literal["codepoint", "utf16"]
    flags: list[Flag]
    warnings: list[str]
    coverage: NotRequired[ReportCoverage]
    confidence: NotRequired[ReportConfidence]
    risk: NotRequired[ReportRisk]
    quality: NotRequired[Share]
    sources: NotRequired[list[ReportSource]]
    prompt: NotRequired[ReportPrompt]
    choices: NotRequired[list[ReportChoice]]
    consistency: NotRequired[ReportConsistency]
    quotes: NotRequired[ReportQuotes]
    schema: NotRequired[ReportSchema]
    numeric: NotRequired[ReportNumbers]
    cache: NotRequired[ReportCache]
    correction: NotRequired[ReportCorrection]
    self_consistency: NotRequired[ReportSelfConsistency]
    stages: NotRequired[list[ReportStage]]
    timing_ms: NotRequired[dict[str, Milliseconds]]
    degraded: NotRequired[list[DegradedVerifier]]
    attempts: NotRequired[list[ReportAttempt]]
    config: NotRequired[str]
