"""The words of the house, as frozen values.

Every offset is half-open and counts Unicode code points. Nothing here does I/O or decides anything.
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
    """One piece of text inside a message; `kind` says whether the wire marked it as evidence of its own."""

    text: str
    kind: Literal["text", "document", "tool_result"] = "text"
    id: str | None = None
    title: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request in no dialect: `developer` reads as `system`, `function` as `tool`."""

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
        """The name by which a person knows it: its title, else its label, else its id."""
        if self.title and (self.title != self.url or not self.label):
            return self.title
        label = self.label or self.id
        return f"[{label}]" if label.isdecimal() else label

    @property
    def sha256(self) -> str:
        """The digest of the text, in hexadecimal: names the text in places where the text itself must not appear."""
        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Claim:
    """One checkable assertion of an answer, with its span `[start, end)` in the answer as the client sees it.

    `lead` is text that the claim leans on and that is read with it but never rewritten into it: the preceding sentence
    behind "It", a list's lead-in, a table's header. `cited` are the citation labels found. `stated_confidence` (0–1)
    is stated or inferred from hedges and boosters. `skip_reason` is set when the claim asserts nothing and so is never
    checked. `pointer` is the JSON pointer of the field that holds it, when the answer is JSON.
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
    """Where evidence stands: a span of the original text (see `Source`), its words, and how well it matches (0–1)."""

    source: str
    start: int
    end: int
    text: str
    score: float
    match: Match


@dataclass(frozen=True, slots=True)
class FlaggedNumber:
    """A number of a claim that the sources do not support: as written, of which type, and its value in base units.

    The value of a date is its first day as a proleptic ordinal.
    """

    text: str
    type: str
    value: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one verifier says of one claim.

    `score` is how strongly the evidence speaks for the claim (0–1); `reason` is one sentence for a person and names
    which words were not found or which value differs. `extracted` and `validated` count the items looked at
    (quotations, numbers), `numbers` are those of the numbers that are not supported. `degraded` is why the entailment
    model should have been asked and was not ("": it was). `signals` are those that a verdict of the model was combined
    from, see `entailment.signals`.
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
    """A probability as far as it was observed: it lies in `[lower, upper]`, most likely near `value`.

    `residual` is the share of what was observed that says neither YES nor NO; the probability is that of YES among
    the rest. `resolution` (0–0.5] is the smallest probability that the observation can tell from zero; numbers in bits
    are clipped to it, decisions are not. Raises ValueError where these do not fit together.
    """

    value: float
    lower: float
    upper: float
    method: Method
    residual: float = 0.0
    resolution: float = 1e-6  # a sum of some twenty rounded probabilities is no more exact than that

    def __post_init__(self) -> None:
        if not (0.0 <= self.lower <= self.value <= self.upper <= 1.0 and 0.0 < self.resolution <= 0.5):
            raise ValueError(f"no probability: {self.value} in [{self.lower}, {self.upper}] at {self.resolution}")


@dataclass(frozen=True, slots=True)
class Unavailable:
    """There is no probability, and why; never to be read as a low one.

    `retry_after` is how many seconds a backend asked to be left alone, when it said so.
    """

    cause: Cause
    retry_after: float | None = None


Estimate = Probability | Unavailable


@dataclass(frozen=True, slots=True)
class Budget:
    """What was measured of a claim. Bits are None where p0 is not known.

    `p1` is belief with the whole context, `p0` without the cited evidence. `required_bits` and `observed_bits` are
    signed bits of `target` and of p1 against p0 clipped to `resolution`, `budget_gap` is their difference: positive
    exactly when p1 < target. `decorative` are places of citations that change nothing; `missing` says why there is no
    probability where the status is unavailable.
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
    """The four parts of a confidence (0–1 each), None where a part is not known.

    `retrieval` is how well the evidence carries the verdict, `source` the weight of its kind, `extraction` the
    answering model's certainty, and `consistency` the agreement with earlier answers.
    """

    retrieval: float | None = None
    source: float | None = None
    extraction: float | None = None
    consistency: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim with every verdict that was given on it, the one that decided, and the confidence in that one (0–1).

    `budget` is there when a model was asked about the claim. `parts` are those that the confidence is made of. The
    confidence is None where it is switched off.
    """

    claim: Claim
    verdict: Verdict
    confidence: float | None
    verdicts: tuple[Verdict, ...] = ()
    budget: Budget | None = None
    parts: ConfidenceParts | None = None

    @property
    def is_final(self) -> bool:
        """Whether asking again would come to the same: it was checked, and by all that were to check it."""
        return self.verdict.label != "not_checked" and not any(verdict.degraded for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of an answer: its text, why it ended (None: it did not), and its mean token probability if known.

    `arguments` are the JSON texts of its tool calls' arguments, when these are to be verified too. `unread` counts the
    characters beyond what is kept of a text of extraordinary length.
    """

    index: int
    text: str
    finish_reason: str | None = None
    certainty: float | None = None
    arguments: tuple[str, ...] = ()
    unread: int = 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """The part of a request that verification reads, in no dialect: its messages and the sources given beside them."""

    messages: tuple[Message, ...] = ()
    sources: tuple[Source, ...] = ()
    temperature: float | None = None


def _require(holds: bool, name: str, expected: str, value: object) -> None:
    """Raise ValueError where a setting lies outside its range."""
    if not holds:
        raise ValueError(f"{name} must be {expected}, not {value}")


def _require_shares(of: object, section: str, *names: str) -> None:
    """Raise ValueError where any of these attributes is no share."""
    for name in names:
        value = getattr(of, name)
        _require(0.0 <= value <= 1.0, f"{section}.{name}", "between 0 and 1", value)


@dataclass(frozen=True, slots=True)
class NumericPolicy:
    """Which numbers are checked and how near is near enough.

    `tolerance` None means the precision that was written; else a share of the value per kind, and days for dates.
    `documents` and `facts` say against which sources numbers are checked; without `auto_flag` no number raises a flag.
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
    """How quotations are looked for; `fuzzy_threshold` is a share (0.5–1.0) and counts only when `fuzzy` is set."""

    enabled: bool = True
    fuzzy: bool = False
    fuzzy_threshold: float = 0.85
    fail_on_all_rejected: bool = False

    def __post_init__(self) -> None:
        value = self.fuzzy_threshold
        _require(0.5 <= value <= 1.0, "quotes.fuzzy_threshold", "between 0.5 and 1", value)


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """About which claims a model is asked for their information budget, and which backend asks ("" for none).

    `asked_from` and `asked_below` bound the probability of support (0–1) that the embedded verifier gives to such a
    claim. A gap over `flag_threshold_bits` raises the flag `budget_gap`. `identity` tells a backend from others of its
    kind.
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
    """What is worth a warning (0–1 each): grounding, consistency and confidence below these, a risk above its own."""

    grounding: float = 0.7
    consistency: float = 0.8
    confidence: float = 0.6
    risk: float = 0.3

    def __post_init__(self) -> None:
        _require_shares(self, "thresholds", "grounding", "consistency", "confidence", "risk")


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds and tolerances: everything, besides claim and evidence, that a verdict depends on.

    `judge` identifies the entailment model and all that decides what it says ("" for none).

    This class and its parts raise ValueError where a value lies outside the range that the settings allow.
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
    """What was found in one choice; `score` is supported / checked, or None when nothing was checked."""

    index: int
    verdict: AnswerVerdict
    score: float | None
    judgements: tuple[Judgement, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much was examined: counts of claims, and shares (0–1) of the answer's and the context's characters."""

    claims_total: int
    claims_checked: int
    claims_skipped: int
    answer_examined: float
    context_examined: float


@dataclass(frozen=True, slots=True)
class Confidence:
    """How far the report is to be relied on (0–1), from those parts that could be known (None: could not)."""

    score: float
    level: Literal["very_low", "low", "medium", "high", "very_high"]
    recommendation: str
    retrieval: float | None = None
    source: float | None = None
    extraction: float | None = None
    consistency: float | None = None


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What an answer says otherwise than an earlier answer of its subject did (CO1).

    `choice` and `claim` name the claim that says `statement`; `exchange` is the id of the exchange, of the time `at`
    (Unix seconds), whose answer said `earlier`.
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
    """An answer beside the earlier answers of its subject (CO2).

    `score` (0–1) falls with every contradiction, by its severity, among the `compared` claims about which an earlier
    answer says anything; None when there are none. `agreement` gives the same for each of these claims, by choice and
    claim id.
    """

    score: float | None
    contradictions: tuple[Contradiction, ...] = ()
    compared: int = 0
    agreement: tuple[tuple[int, str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Risk:
    """How risky it is to act on an answer (0–1), what makes it so, the heaviest first, and what to do."""

    score: float
    level: Severity
    factors: tuple[str, ...]
    recommendation: str = ""


@dataclass(frozen=True, slots=True)
class Violation:
    """A place where a JSON answer breaks its schema: where, what was expected, and the type that was found."""

    field: str
    index: int | None
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class QuoteCounts:
    """Quotations of one answer: how many were found in it, how many stand in a source, and those rejected per field."""

    extracted: int
    validated: int
    rejected: int
    rejected_by_field: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NumericCounts:
    """The numbers of one answer, one by one, and what their check does to a stated confidence (−0.2 is −20 %).

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
    """Verdicts taken from the cache and computed anew, and the age of the oldest one taken, in seconds."""

    hits: int = 0
    misses: int = 0
    oldest_s: float | None = None


@dataclass(frozen=True, slots=True)
class StageUse:
    """How many claims of an answer came to one stage of the cascade, and what that cost."""

    stage: Literal["deterministic", "embedded", "model"]
    claims: int
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class SampledClaim:
    """What the samples say of one claim: `votes` in their order, 1 the same, ½ nothing of the kind, 0 otherwise.

    A vote is None where none could be had; `variance` (0–1) is their mean squared deviation from the claim.
    """

    choice: int
    claim: str
    votes: tuple[float | None, ...]
    variance: float | None


@dataclass(frozen=True, slots=True)
class SelfConsistency:
    """How far further answers to the same request bear one out (SC1). While `pending`, only what was asked is known.

    `answered` of `asked` samples could be compared; `risk` (0–1) is the mean variance of the claims, None when nothing
    was compared. The tokens are those of the extra calls, as far as their server told them.
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
    """An answer that was asked for once more, as the first one breaks the shape declared for it.

    `answer` is the corrected text and `violations` those that are left in it; both are None where there is none, for
    the `reason` given. The tokens are those of the extra call, as far as its server reports them.
    """

    status: Literal["pending", "complete", "failed"]
    answer: str | None = None
    violations: tuple[Violation, ...] | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One upstream that was asked for an answer, the model's name there, and how that ended.

    `outcome` is `answered`, `unreachable`, `connect_timeout`, `timeout`, `broken`, `busy`, `refused` or `status_` and a
    number.
    """

    upstream: str
    model: str
    outcome: str


@dataclass(frozen=True, slots=True)
class PromptSize:
    """How many tokens of a prompt the model server says it read (None: it does not), and how many there are at least.

    `is_truncated` says that the first are far too few for the second: the model has not seen part of the prompt.
    """

    reported: int | None
    at_least: int
    is_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts of one answer and their aggregate; `wire.md` gives the meaning of every field.

    `timing_ms` maps context, claims, verify and total to milliseconds. `stages` are told when a model may be asked,
    `attempts` when the answer is not that of the first.
    `config` is the digest of the policy used.
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
    """One HTTP request on its way to an upstream. `target` is path and query below `/v1`, as the client wrote them.

    Of a `native` call it is below the root of the server: such a call is one of Ollama's own API. What is stored of a
    call belongs to its `tenant`, which is "" for all clients where these have no keys, or share everything. `address`
    is that of the client, "" where it is not known.
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
    """One HTTP response on its way to the client: a body that is all there, or chunks that are still to come.

    `in_events` says that every chunk ends where a server-sent event ends, so that a comment may go between two of them.
    """

    status: int
    headers: Headers
    body: bytes | Chunks
    in_events: bool = False
