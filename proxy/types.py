"""The words of the house, as frozen values.

Every offset is half-open and counts Unicode code points. Nothing here does I/O or decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    """One choice of an answer: its text, why it ended (None: it did not), and its mean token probability if known."""

    index: int
    text: str
    finish_reason: str | None = None
    certainty: float | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """The part of a request that verification reads, in no dialect: what was asked and what evidence came with it."""

    messages: tuple[Message, ...] = ()
    sources: tuple[Source, ...] = ()
    question: str = ""
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
