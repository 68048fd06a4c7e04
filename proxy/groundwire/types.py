"""The domain model, as frozen values.

Every offset is half-open and counts Unicode code points. Nothing here does I/O or makes decisions.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

Label = Literal["supported", "contradicted", "unsupported", "not_checked"]
SourceKind = Literal["source", "document", "tool", "system", "user", "facts"]
Role = Literal["system", "user", "assistant", "tool"]
Match = Literal["exact", "fuzzy", "numeric", "semantic", "inference", "sql", "model"]
ClaimKind = Literal["statement", "numeric", "quote", "table_row", "field", "heading", "code"]
Status = Literal["complete", "partial", "pending", "deferred", "skipped", "failed"]
AnswerVerdict = Literal["grounded", "partially_grounded", "ungrounded", "not_applicable", "not_checked"]
Operation = Literal["output_verification", "memory_gate", "trace_auditing"]
Method = Literal["logprobs", "samples", "service", "verifier"]
Cause = Literal[
    "no_logprobs",
    "misaligned",
    "no_verdict",
    "no_samples",
    "timeout",
    "rate_limited",
    "unreachable",
    "overload",
    "error",
]
ContradictionKind = Literal["entity", "temporal", "semantic"]
Intent = Literal["lookup", "compare", "count", "list", "why", "other"]
Severity = Literal["low", "medium", "high", "critical"]
BudgetStatus = Literal[
    "supported",
    "contradicted",
    "not_entailed",
    "prior_leak",
    "decorative_citation",
    "ambiguous",
    "unknown_citation",
    "no_context",
    "unavailable",
]


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of text within a message; `kind` is "text" unless the wire format marks it as evidence."""

    text: str
    kind: Literal["text", "document", "tool_result"] = "text"
    id: str | None = None
    title: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request, independent of the dialect: `developer` becomes `system`, `function` becomes `tool`."""

    index: int
    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A piece of context that may support a claim.

    `text` is a slice of the original and starts `offset` code points into it: into the text of part `part_index` of
    message `message_index`, or into the source that the request gave explicitly (both indices None). `label` is the id
    or name that the request gives it, `labels` are all names by which an answer may cite it, such as "1" or "doc-3".
    """

    id: str
    kind: SourceKind
    text: str
    message_index: int | None = None
    part_index: int | None = None
    offset: int = 0
    title: str | None = None
    labels: tuple[str, ...] = ()
    label: str | None = None
    url: str | None = None

    @property
    def name(self) -> str:
        """The display name: the title, else the label, else the id."""
        if self.title and (self.title != self.url or not self.label):
            return self.title
        label = self.label or self.id
        return f"[{label}]" if label.isdecimal() else label

    @property
    def sha256(self) -> str:
        """The digest of the text, in hexadecimal; identifies the text where the text itself must not appear."""
        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Claim:
    """One checkable assertion of an answer, with its span `[start, end)` in the answer as the client sees it.

    `lead` is text needed to understand the claim: the sentence before "It …", the introduction of a list, the header of
    a table. `cited` are the citation labels found. `stated_confidence` (0–1) is explicit or inferred from hedges and
    boosters. `skip_reason` is set when the claim asserts nothing and is not checked. `pointer` is the JSON pointer of
    its field, when the answer is JSON.
    """

    id: str
    text: str
    start: int
    end: int
    kind: ClaimKind = "statement"
    lead: str = ""
    cited: tuple[str, ...] = ()
    stated_confidence: float = 1.0
    skip_reason: str | None = None
    pointer: str | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """A piece of evidence: a span of the original text (see `Source`), its text, and the quality of the match (0–1)."""

    source: str
    start: int
    end: int
    text: str
    score: float
    match: Match


@dataclass(frozen=True, slots=True)
class FlaggedNumber:
    """An unsupported number of a claim: its text, its type, and its value in base units.

    The value of a date is its first day as a proleptic ordinal.
    """

    text: str
    type: str
    value: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one verifier on one claim.

    `score` is the strength of the support (0–1); `reason` is one sentence for people that names the missing words or
    the differing value. `extracted` and `validated` count the items checked (quotations, numbers), `numbers` lists the
    unsupported ones. `degraded` is the reason why the entailment model was not consulted although it should have been
    ("": it was). `signals` are the inputs of a combined verdict, see `entailment.signals`.
    """

    verifier: str
    label: Label
    score: float
    method: str
    reason: str
    citations: tuple[Citation, ...] = ()
    flags: tuple[str, ...] = ()
    extracted: int = 1
    validated: int = 0
    degraded: str = ""
    signals: tuple[float, ...] = ()
    numbers: tuple[FlaggedNumber, ...] = ()


@dataclass(frozen=True, slots=True)
class Probability:
    """An observed probability: it lies in `[lower, upper]`, most likely near `value`.

    `residual` is the share of the observation that is neither YES nor NO; the probability is that of YES among the
    rest. `resolution` (0–0.5] is the smallest probability that the observation distinguishes from zero; bits are
    clipped to it, decisions are not. `contradiction` (0–1) is the probability that the context contradicts the claim,
    if a service reports it. Raises ValueError when these are inconsistent.
    """

    value: float
    lower: float
    upper: float
    method: Method
    residual: float = 0.0
    resolution: float = 1e-6  # the precision of a sum of some twenty rounded probabilities
    contradiction: float | None = None

    def __post_init__(self) -> None:
        if not (0.0 <= self.lower <= self.value <= self.upper <= 1.0 and 0.0 < self.resolution <= 0.5):
            raise ValueError(f"no probability: {self.value} in [{self.lower}, {self.upper}] at {self.resolution}")


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The cause of a missing probability; never to be read as a low one.

    `retry_after` is the number of seconds that a backend asked to wait, if it did.
    """

    cause: Cause
    retry_after: float | None = None


Estimate = Probability | Unavailable


@dataclass(frozen=True, slots=True)
class Budget:
    """The information budget of a claim. Bits are None if p0 is not known.

    `p1` is the probability of the claim with the whole context, `p0` without the cited evidence. `required_bits` and
    `observed_bits` are signed bits of `target` and of p1 against p0 clipped to `resolution`, `budget_gap` is their
    difference: positive exactly when p1 < target. `decorative` are indices of citations that change nothing; `missing`
    is the cause when the status is unavailable.
    """

    status: BudgetStatus
    reason: str
    target: float
    p1: Probability | None = None
    p0: Probability | None = None
    required_bits: float | None = None
    observed_bits: float | None = None
    budget_gap: float | None = None
    resolution: float | None = None
    decorative: tuple[int, ...] = ()
    missing: Unavailable | None = None


@dataclass(frozen=True, slots=True)
class ConfidenceParts:
    """The four components of a confidence (0–1 each), None if one is not known.

    `retrieval` is the strength of the evidence for the verdict, `source` the weight of its kind, `extraction` the
    answering model's certainty, and `consistency` the agreement with earlier answers.
    """

    retrieval: float | None = None
    source: float | None = None
    extraction: float | None = None
    consistency: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim with all verdicts on it, the deciding one, and the confidence in that one (0–1).

    `budget` is present when a model was asked about the claim. `parts` are the components of the confidence, which is
    None if disabled.
    """

    claim: Claim
    verdict: Verdict
    confidence: float | None
    verdicts: tuple[Verdict, ...] = ()
    budget: Budget | None = None
    parts: ConfidenceParts | None = None

    @property
    def is_final(self) -> bool:
        """True if verification is complete: the claim was checked, by every verifier that applies."""
        return self.verdict.label != "not_checked" and not any(verdict.degraded for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of an answer: its text, its finish reason (None: unfinished), and its mean token probability if known.

    `arguments` are the JSON texts of its tool calls' arguments, if these are to be verified. `unread` counts the
    characters dropped from a very long text.
    """

    index: int
    text: str
    finish_reason: str | None = None
    certainty: float | None = None
    arguments: tuple[str, ...] = ()
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """The part of a request that verification reads, in no dialect: its messages and separate sources."""

    messages: tuple[Message, ...] = ()
    sources: tuple[Source, ...] = ()
    temperature: float | None = None


def _require(holds: bool, name: str, expected: str, value: object) -> None:
    """Raise ValueError when a value is out of range."""
    if not holds:
        raise ValueError(f"{name} must be {expected}, not {value}")


def _require_shares(of: object, section: str, *names: str) -> None:
    """Raise ValueError when any of these attributes is outside 0 to 1."""
    for name in names:
        value = getattr(of, name)
        _require(0.0 <= value <= 1.0, f"{section}.{name}", "between 0 and 1", value)


@dataclass(frozen=True, slots=True)
class NumericPolicy:
    """The numbers to check and their tolerance.

    `tolerance` None means the precision as written; else it is a share of the value by kind, and days for dates.
    `documents` and `facts` select the sources to check against; without `auto_flag` no number raises a flag.
    """

    currency: bool = True
    percentage: bool = True
    ratio: bool = True
    date: bool = True
    documents: bool = True
    facts: bool = True
    auto_flag: bool = True
    tolerance: tuple[tuple[str, float], ...] | None = None
    confidence_penalty: float = 0.2
    max_source_checks: int = 10
    timeout_s: float = 0.1

    def __post_init__(self) -> None:
        _require_shares(self, "numeric", "confidence_penalty")
        _require(self.max_source_checks >= 1, "numeric.max_source_checks", "at least 1", self.max_source_checks)
        _require(self.timeout_s >= 0, "numeric.timeout_s", "at least 0", self.timeout_s)
        for kind, value in self.tolerance or ():
            is_fit = value >= 0 if kind == "date" else 0.0 <= value <= 1.0
            _require(is_fit, f"numeric.tolerance.{kind}", "at least 0" if kind == "date" else "between 0 and 1", value)


@dataclass(frozen=True, slots=True)
class QuotePolicy:
    """The matching of quotations; `fuzzy_threshold` is a share (0.5–1.0) and applies only if `fuzzy` is set."""

    enabled: bool = True
    fuzzy: bool = False
    fuzzy_threshold: float = 0.85
    fail_on_all_rejected: bool = False

    def __post_init__(self) -> None:
        value = self.fuzzy_threshold
        _require(0.5 <= value <= 1.0, "quotes.fuzzy_threshold", "between 0.5 and 1", value)


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """The claims whose information budget a model estimates, and the backend to use ("" for none).

    `asked_from` and `asked_below` bound the probability of support (0–1) that the embedded verifier assigns to such a
    claim. A gap over `flag_threshold_bits` raises the flag `budget_gap`. `identity` distinguishes backends of one kind.
    """

    backend: str = ""
    identity: str = ""
    asked_from: float = 0.2
    asked_below: float = 0.8
    flag_threshold_bits: float = 0.0

    def __post_init__(self) -> None:
        _require_shares(self, "model", "asked_from", "asked_below")
        bits = self.flag_threshold_bits
        _require(bits >= 0, "model.flag_threshold_bits", "at least 0", bits)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of warnings (0–1 each): minimum grounding, consistency and confidence, and maximum risk."""

    grounding: float = 0.7
    consistency: float = 0.8
    confidence: float = 0.6
    risk: float = 0.3

    def __post_init__(self) -> None:
        _require_shares(self, "thresholds", "grounding", "consistency", "confidence", "risk")


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds and tolerances: everything that a verdict depends on apart from claim and evidence.

    `judge` identifies the entailment model and its settings ("" for none).

    This class and its parts raise ValueError when a value is outside the range that the settings allow.
    """

    name: Literal["strict", "balanced", "lenient"] = "balanced"
    verifiers: tuple[str, ...] = ("quote", "numeric", "statement")
    max_claims: int = 500
    verify_hedged: bool = False
    numeric: NumericPolicy = field(default_factory=NumericPolicy)
    quotes: QuotePolicy = field(default_factory=QuotePolicy)
    judge: str = ""
    model: ModelPolicy = field(default_factory=ModelPolicy)
    has_confidence: bool = True
    confidence_weights: tuple[tuple[str, float], ...] = (
        ("retrieval", 0.3),
        ("source", 0.25),
        ("extraction", 0.25),
        ("consistency", 0.2),
    )
    source_weights: tuple[tuple[str, float], ...] = (
        ("tool", 1.0),
        ("document", 1.0),
        ("source", 1.0),
        ("system", 0.9),
        ("user", 0.7),
    )
    thresholds: Thresholds = Thresholds()

    def __post_init__(self) -> None:
        _require(self.max_claims >= 1, "max_claims", "at least 1", self.max_claims)
        for part, weight in self.confidence_weights:
            _require(0.0 <= weight < math.inf, f"confidence_weights.{part}", "at least 0", weight)
        for kind, weight in self.source_weights:
            _require(0.0 <= weight <= 1.0, f"source_weights.{kind}", "between 0 and 1", weight)


@dataclass(frozen=True, slots=True)
class ChoiceReport:
    """The verdicts on one choice; `score` is supported / checked, or None when nothing was checked."""

    index: int
    verdict: AnswerVerdict
    score: float | None
    judgements: tuple[Judgement, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """The extent of verification: counts of claims, and shares (0–1) of the answer's and the context's characters."""

    claims_total: int
    claims_checked: int
    claims_skipped: int
    answer_examined: float
    context_examined: float


@dataclass(frozen=True, slots=True)
class Confidence:
    """The reliability of the report (0–1) and its components (None: not known)."""

    score: float
    level: Literal["very_low", "low", "medium", "high", "very_high"]
    recommendation: str
    retrieval: float | None = None
    source: float | None = None
    extraction: float | None = None
    consistency: float | None = None


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A contradiction between an answer and an earlier answer about its subject.

    `choice` and `claim` identify the claim, whose text is `statement`; `exchange` is the id of the exchange at time
    `at` (Unix seconds) that contains the statement `earlier`.
    """

    choice: int
    claim: str
    statement: str
    earlier: str
    exchange: str
    at: float
    kind: ContradictionKind
    severity: Severity
    reason: str


@dataclass(frozen=True, slots=True)
class Consistency:
    """The agreement of an answer with earlier answers about its subject.

    `score` (0–1) falls with every contradiction, by its severity, among the `compared` claims on which an earlier
    answer has a statement; None when there are none. `agreement` has the score of each of these claims, by choice and
    claim id.
    """

    score: float | None
    contradictions: tuple[Contradiction, ...] = ()
    compared: int = 0
    agreement: tuple[tuple[int, str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Risk:
    """The risk of acting on an answer (0–1), its factors, the heaviest first, and a recommendation."""

    score: float
    level: Severity
    factors: tuple[str, ...]
    recommendation: str = ""


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of the schema of a JSON answer: its place, the expectation, and the type found."""

    field: str
    index: int | None
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class QuoteCounts:
    """Quotations of one answer: the numbers extracted, found in a source, and rejected in total and by field."""

    extracted: int
    validated: int
    rejected: int
    rejected_by_field: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NumericCounts:
    """The numbers of one answer, and their effect on a stated confidence (−0.2 is −20 %).

    `unverified_claims` were checked and are not supported; they are `flagged`, each with its choice and claim id.
    """

    total_claims: int
    verified_claims: int
    unverified_claims: int
    confidence_adjustment: float
    not_checked: int = 0
    flagged: tuple[tuple[int, str, FlaggedNumber], ...] = ()


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Verdicts taken from the cache and newly computed, and the age in seconds of the oldest cached one."""

    hits: int = 0
    misses: int = 0
    oldest_s: float | None = None


@dataclass(frozen=True, slots=True)
class StageUse:
    """The number of claims that reached one stage of the cascade, and its cost."""

    stage: Literal["deterministic", "embedded", "judge", "model"]
    claims: int
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class SampledClaim:
    """Agreement of the samples with one claim: `votes` in their order, 1 the same, ½ unrelated, 0 otherwise.

    A vote is None if the sample failed; `variance` (0–1) is their mean squared deviation from the claim.
    """

    choice: int
    claim: str
    votes: tuple[float | None, ...]
    variance: float | None


@dataclass(frozen=True, slots=True)
class SelfConsistency:
    """The agreement of further answers to the same request. While `pending`, only the request is known.

    `answered` of `asked` samples could be compared; `risk` (0–1) is the mean variance of the claims, None when nothing
    was compared. The tokens are those of the extra calls, as far as the server reports them.
    """

    status: Literal["pending", "complete", "failed"]
    asked: int
    temperatures: tuple[float, ...]
    answered: int = 0
    risk: float | None = None
    claims: tuple[SampledClaim, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Correction:
    """A second answer, requested because the first one violates its declared shape.

    `answer` is the corrected text and `violations` the remaining ones; both are None if there is no second answer, for
    the `reason` given. The tokens are those of the extra call, as far as the server reports them.
    """

    status: Literal["pending", "complete", "failed"]
    answer: str | None = None
    violations: tuple[Violation, ...] | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One upstream that was tried, the model's name there, and the outcome.

    `outcome` is `answered`, `unreachable`, `connect_timeout`, `timeout`, `broken`, `busy`, `refused` or `status_` and a
    number.
    """

    upstream: str
    model: str
    outcome: str


@dataclass(frozen=True, slots=True)
class PromptSize:
    """The number of prompt tokens that the model server reports (None: none), and the least possible number.

    `is_truncated` is set when the first is far below the second: the model did not receive the whole prompt.
    """

    reported: int | None
    at_least: int
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts on one answer and their aggregate.

    `timing_ms` maps context, claims, verify and total to milliseconds. `stages` is set if a model may be asked,
    `attempts` if the first upstream did not answer. `config` is the digest of the policy used.
    """

    id: str
    status: Status
    verdict: AnswerVerdict
    score: float | None = None
    flags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    coverage: Coverage | None = None
    confidence: Confidence | None = None
    risk: Risk | None = None
    quality: float | None = None
    sources: tuple[Source, ...] = ()
    prompt: PromptSize | None = None
    choices: tuple[ChoiceReport, ...] = ()
    consistency: Consistency | None = None
    quotes: QuoteCounts | None = None
    violations: tuple[Violation, ...] | None = None
    numeric: NumericCounts | None = None
    cache: CacheUse = CacheUse()
    stages: tuple[StageUse, ...] = ()
    self_consistency: SelfConsistency | None = None
    correction: Correction | None = None
    timing_ms: tuple[tuple[str, float], ...] = ()
    degraded: tuple[tuple[str, str], ...] = ()
    attempts: tuple[Attempt, ...] = ()
    config: str = ""


Header = tuple[bytes, bytes]
Headers = tuple[Header, ...]
Chunks = AsyncGenerator[bytes, None]


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request to an upstream. `target` is path and query below `/v1`, as the client wrote them.

    A `native` call uses Ollama's own API, below the root of the server. `tenant` owns everything stored about the call;
    it is "" if clients have no keys, or share all data. `address` is that of the client, "" if unknown.
    """

    method: str
    target: str
    headers: Headers
    body: bytes
    native: bool = False
    tenant: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response to the client: a complete body, or chunks still to come.

    `in_events` means that every chunk ends at the end of a server-sent event, so that a comment may be inserted between
    two.
    """

    status: int
    headers: Headers
    body: bytes | Chunks
    in_events: bool = False
