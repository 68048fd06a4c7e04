"""The report on one answer, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from groundwire.domain import AnswerVerdict, ContradictionKind, FlaggedNumber, Judgement, Severity, Source, Status


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
