"""The domain model, as frozen values.

Every offset is half-open and counts Unicode code points. Nothing here does I/O or makes decisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, TypeVar

T = TypeVar("T")

Label = Literal["supported", "contradicted", "unsupported", "not_checked"]
SourceKind = Literal["source", "document", "tool", "system", "user", "facts"]
Role = Literal["system", "user", "assistant", "tool"]
Match = Literal["exact", "fuzzy", "numeric", "words", "sql", "model"]
ClaimKind = Literal["statement", "numeric", "quote", "table_row", "field", "heading", "code"]
Flag = Literal[
    "unsupported_claims",
    "contradicted_claims",
    "numeric_mismatch",
    "misattributed",
    "quote_not_found",
    "quotes_all_rejected",
    "evidence_schema_violation",
    "unknown_citation",
    "budget_gap",
    "inconsistent_with_history",
    "low_confidence",
    "high_risk",
    "context_truncated",
    "answer_truncated",
    "verifier_degraded",
]
ConfidenceLevel = Literal["very_low", "low", "medium", "high", "very_high"]
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


@dataclass(frozen=True)
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
        """The display name: the title, else the label, else the message and its role, else the id."""
        if self.title and (self.title != self.url or not self.label):
            return self.title
        if self.label is None and self.message_index is not None:
            part = f", part {self.part_index + 1}" if self.part_index else ""
            return f"Message {self.message_index + 1}{part} ({self.kind})"
        label = self.label or self.id
        return f"[{label}]" if label.isdecimal() else label

    @cached_property
    def sha256(self) -> str:
        """The digest of the text, in hexadecimal; identifies the text where the text itself must not appear."""
        return sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Claim:
    """One checkable assertion of an answer, with its span `[start, end)` in the answer as the client sees it.

    `lead` is text needed to understand the claim: the sentence before "It …", the introduction of a list, the header of
    a table. `cited` are the citation labels found. `stated_confidence` (0–1) is explicit or inferred from hedges and
    boosters. `skip_reason` is set when the claim asserts nothing. `pointer` is the JSON pointer of its field, when the
    answer is JSON.
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

    @property
    def is_judged(self) -> bool:
        """True if the judge reads it: it asserts something, or is an instruction, which a source may contradict."""
        return self.skip_reason in (None, "instruction")


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
    ("": it was). `signals` are the inputs of a combined verdict, see `verifiers.entailment.Signals`.
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
    def is_skipped(self) -> bool:
        """True if the claim needs no check."""
        return self.verdict.method == "skipped"

    @property
    def is_decided(self) -> bool:
        """True if the claim was checked, or needs no check."""
        return self.verdict.label != "not_checked" or self.is_skipped

    @property
    def is_final(self) -> bool:
        """True if verification is complete: the claim is decided, by every verifier that applies."""
        return self.is_decided and not any(verdict.degraded for verdict in self.verdicts)


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


def restored(shape: type[T], stored: Mapping[str, Any]) -> T:
    """Return a frozen value from its fields as decoded JSON; lists become tuples.

    Fields of later versions are left out, so that replicas of two versions read each other's values.
    """
    known = {each.name for each in fields(shape)}  # type: ignore[arg-type]
    given = {name: tuple(each) if isinstance(each, list) else each for name, each in stored.items() if name in known}
    return shape(**given)
