"""The words of the house, as frozen values.

Every offset is half-open and counts Unicode code points. Nothing here does I/O or decides anything.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

Label = Literal["supported", "contradicted", "unsupported", "not_checked"]
SourceKind = Literal["source", "document", "tool", "system", "user"]
Role = Literal["system", "user", "assistant", "tool"]
Match = Literal["exact", "fuzzy", "numeric", "semantic", "inference"]
ClaimKind = Literal["statement", "numeric", "quote", "table_row", "field", "heading", "code"]
Status = Literal["complete", "partial", "pending", "deferred", "skipped", "failed"]
AnswerVerdict = Literal["grounded", "partially_grounded", "ungrounded", "not_applicable", "not_checked"]


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of text inside a message; `kind` says whether the wire marked it as evidence of its own."""

    text: str
    kind: Literal["text", "document", "tool_result"] = "text"
    id: str | None = None
    title: str | None = None


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
    message `message_index`, or into the source that the request gave explicitly (both indices None). `labels` are the
    names by which an answer may cite it, such as "1" or "doc-3".
    """

    id: str
    kind: SourceKind
    text: str
    message_index: int | None = None
    part_index: int | None = None
    offset: int = 0
    title: str | None = None
    labels: tuple[str, ...] = ()

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
class Verdict:
    """What one verifier says of one claim.

    `score` is how strongly the evidence speaks for the claim (0–1); `reason` is one sentence for a person and names
    which words were not found or which value differs. `extracted` and `validated` count the items looked at
    (quotations, numbers).
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


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim with every verdict that was given on it, the one that decided, and the confidence in that one (0–1)."""

    claim: Claim
    verdict: Verdict
    confidence: float
    verdicts: tuple[Verdict, ...] = ()


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


@dataclass(frozen=True, slots=True)
class NumericPolicy:
    """Which numbers are checked and how near is near enough.

    `tolerance` None means the precision that was written; else a share of the value per kind, and days for dates.
    """

    currency: bool = True
    percentage: bool = True
    ratio: bool = True
    date: bool = True
    tolerance: tuple[tuple[str, float], ...] | None = None
    confidence_penalty: float = 0.2
    max_source_checks: int = 10
    timeout_s: float = 0.1


@dataclass(frozen=True, slots=True)
class QuotePolicy:
    """How quotations are looked for; `fuzzy_threshold` is a share (0.5–1.0) and counts only when `fuzzy` is set."""

    enabled: bool = True
    fuzzy: bool = False
    fuzzy_threshold: float = 0.85
    fail_on_all_rejected: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds and tolerances: everything, besides claim and evidence, that a verdict depends on."""

    name: Literal["strict", "balanced", "lenient"] = "balanced"
    verifiers: tuple[str, ...] = ("quote", "numeric", "statement")
    max_claims: int = 500
    verify_hedged: bool = False
    numeric: NumericPolicy = field(default_factory=NumericPolicy)
    quotes: QuotePolicy = field(default_factory=QuotePolicy)
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
    low_confidence: float = 0.6


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
    """Claims with numbers in one answer, and what their check does to a stated confidence (−0.2 is −20 %)."""

    total_claims: int
    verified_claims: int
    unverified_claims: int
    confidence_adjustment: float


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Verdicts taken from the cache and computed anew, and the age of the oldest one taken, in seconds."""

    hits: int = 0
    misses: int = 0
    oldest_s: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """All verdicts of one answer and their aggregate; `wire.md` gives the meaning of every field.

    `timing_ms` maps context, claims, verify and total to milliseconds. `config` is the digest of the policy used.
    """

    id: str
    status: Status
    verdict: AnswerVerdict
    score: float | None = None
    flags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    coverage: Coverage | None = None
    confidence: Confidence | None = None
    sources: tuple[Source, ...] = ()
    choices: tuple[ChoiceReport, ...] = ()
    quotes: QuoteCounts | None = None
    violations: tuple[Violation, ...] | None = None
    numeric: NumericCounts | None = None
    cache: CacheUse = CacheUse()
    timing_ms: tuple[tuple[str, float], ...] = ()
    degraded: tuple[tuple[str, str], ...] = ()
    config: str = ""


Headers = tuple[tuple[bytes, bytes], ...]
Chunks = AsyncGenerator[bytes, None]


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request on its way to an upstream. `target` is path and query below `/v1`, as the client wrote them."""

    method: str
    target: str
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """One HTTP response on its way to the client: a body that is all there, or chunks that are still to come.

    `in_events` says that every chunk ends where a server-sent event ends, so that a comment may go between two of them.
    """

    status: int
    headers: Headers
    body: bytes | Chunks
    in_events: bool = False
