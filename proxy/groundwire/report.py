"""The report on one answer: frozen values, and their wire format, of which `report_schema` declares the types.

The wire format is the same in bodies, streams and stored reports.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

from groundwire.domain import (
    AnswerVerdict,
    Budget,
    Choice,
    Citation,
    Claim,
    ConfidenceLevel,
    ContradictionKind,
    FlaggedNumber,
    Judgement,
    Message,
    Probability,
    Severity,
    Source,
    Status,
)

if TYPE_CHECKING:
    from groundwire.report_schema import GroundingReport  # which imports pydantic

VERSION = 1
TOOL_CALL = re.compile(r"/tool_calls/(\d+)/function/arguments")
"""The JSON pointer of the arguments of a tool call."""


class Utf16:
    """Convert offsets from code points to UTF-16 units, given the texts that they refer to."""

    def __init__(self, choices: Sequence[Choice], messages: Sequence[Message], sources: Sequence[Source]) -> None:
        self._choices = {choice.index: choice for choice in choices}
        self._parts = {(m.index, at): part.text for m in messages for at, part in enumerate(m.parts)}
        self._sources = {source.id: source for source in sources}
        self._wide = cache(_wide)

    def in_answer(self, choice: int, pointer: str | None, offset: int) -> int:
        """Convert an offset in the text of a choice, or in the arguments of a tool call if `pointer` refers to one."""
        found = self._choices[choice]
        call = TOOL_CALL.match(pointer or "")
        return self._widened(found.arguments[int(call[1])] if call else found.text, offset)

    def in_source(self, id_: str, offset: int) -> int:
        """Convert an offset in the original text that a source was cut from."""
        source = self._sources[id_]
        if source.message_index is None:
            return self._widened(source.text, offset)
        return self._widened(self._parts[source.message_index, source.part_index or 0], offset)

    def _widened(self, text: str, offset: int) -> int:
        return offset + bisect_left(self._wide(text), offset)


def _wide(text: str) -> list[int]:
    """Return the positions of characters that take two UTF-16 units."""
    return [] if text.isascii() else [at for at, character in enumerate(text) if ord(character) > 0xFFFF]


def render_claim(judgement: Judgement, choice: int = 0, units: Utf16 | None = None) -> dict[str, Any]:
    """Render one claim of a choice as in a report; offsets are in code points, or converted by `units`."""
    claim, verdict = judgement.claim, judgement.verdict
    flags = list(dict.fromkeys(flag for each in judgement.verdicts for flag in each.flags))
    start, end = claim.start, claim.end
    if units:
        start, end = (units.in_answer(choice, claim.pointer, offset) for offset in (start, end))
    return {
        "id": claim.id,
        "text": claim.text,
        "start": start,
        "end": end,
        **({} if claim.pointer is None else {"pointer": claim.pointer}),
        "kind": claim.kind,
        "label": verdict.label,
        "score": rounded(verdict.score) if verdict.label != "not_checked" else None,
        "confidence": rounded(judgement.confidence) if verdict.label != "not_checked" else None,
        **({"confidence_parts": _rounded(judgement.parts)} if judgement.parts else {}),
        "stated_confidence": rounded(claim.stated_confidence),
        "verifier": verdict.verifier or None,
        "method": verdict.method,
        "reason": verdict.reason,
        **({"skip_reason": claim.skip_reason} if claim.skip_reason and judgement.is_skipped else {}),
        **({"flags": flags} if flags else {}),
        "citations": [render_citation(citation, units) for citation in verdict.citations],
        **({} if judgement.budget is None else {"budget": render_budget(judgement.budget)}),
    }


def render_budget(budget: Budget) -> dict[str, Any]:
    """Render the budget of a claim. Unknown values are null; `missing` is the cause when the status is unavailable."""
    return {
        "p0": rounded(budget.p0.value if budget.p0 else None),
        "p1": rounded(budget.p1.value if budget.p1 else None),
        "required_bits": rounded(budget.required_bits),
        "observed_bits": rounded(budget.observed_bits),
        "budget_gap": rounded(budget.budget_gap),
        "status": budget.status,
        "target": budget.target,
        "resolution": budget.resolution,
        **_interval("p1", budget.p1),
        **({} if budget.p1 is None else {"method": budget.p1.method}),
        **_interval("p0", budget.p0),
        **({"decorative": list(budget.decorative)} if budget.decorative else {}),
        **({} if budget.missing is None else {"missing": budget.missing.cause}),
    }


def _interval(name: str, probability: Probability | None) -> dict[str, Any]:
    """Render the interval of a probability, unless that is a single value."""
    if probability is None or probability.lower >= probability.upper:
        return {}
    return {f"{name}_interval": [rounded(probability.lower), rounded(probability.upper)]}


def render_citation(citation: Citation, units: Utf16 | None = None) -> dict[str, Any]:
    """Render one piece of evidence."""
    start, end = citation.start, citation.end
    if units:
        start, end = (units.in_source(citation.source, offset) for offset in (start, end))
    return {
        "source": citation.source,
        "start": start,
        "end": end,
        "text": citation.text,
        "score": rounded(citation.score),
        "match": citation.match,
    }


def _values(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass whose values are not to be copied, as `asdict` would."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _rounded(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass with numbers of at most four digits after the point."""
    return {name: rounded(each) if isinstance(each, float) else each for name, each in _values(value).items()}


def render_source(source: Source) -> dict[str, Any]:
    """Render a source without its text."""
    return {
        "id": source.id,
        **({} if source.label is None else {"label": source.label}),
        "kind": source.kind,
        **({} if source.message_index is None else {"message_index": source.message_index}),
        **({} if not source.part_index else {"part_index": source.part_index}),
        **({} if source.title is None else {"title": source.title}),
        **({} if source.url is None else {"url": source.url}),
        "chars": len(source.text),
        "sha256": source.sha256,
    }


def render_found(claim: Claim) -> dict[str, Any]:
    """Render a claim without a verdict."""
    return {
        "id": claim.id,
        "text": claim.text,
        "start": claim.start,
        "end": claim.end,
        "kind": claim.kind,
        "cited": list(claim.cited),
        "stated_confidence": rounded(claim.stated_confidence),
        **({} if claim.pointer is None else {"pointer": claim.pointer}),
        **({} if claim.skip_reason is None else {"skip_reason": claim.skip_reason}),
    }


def to_json(value: Any, indent: int | None = None) -> str:
    """Return JSON values as text: compact unless an indent is given; lone surrogates are escaped."""
    separators = None if indent else (",", ":")
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, separators=separators)
    return text


def rounded(value: float | None) -> float | None:
    """Round a number that may be missing to four digits after the point."""
    return None if value is None else round(value, 4)


@dataclass(frozen=True, slots=True)
class ChoiceReport:
    """The verdicts on one choice; `score` is supported / checked, or None when nothing was checked."""

    index: int
    verdict: AnswerVerdict
    score: float | None
    judgements: tuple[Judgement, ...]

    def to_dict(self, units: Utf16 | None = None) -> dict[str, Any]:
        """Return the choice in the wire format."""
        return {
            "index": self.index,
            "verdict": self.verdict,
            "score": rounded(self.score),
            "claims": [render_claim(judgement, self.index, units) for judgement in self.judgements],
        }


@dataclass(frozen=True, slots=True)
class Coverage:
    """The extent of verification: counts of claims, and shares (0–1) of the answer's and the context's characters."""

    claims_total: int
    claims_checked: int
    claims_skipped: int
    answer_examined: float
    context_examined: float

    def to_dict(self) -> dict[str, Any]:
        """Return the counts in the wire format."""
        return _rounded(self)


@dataclass(frozen=True, slots=True)
class Confidence:
    """The reliability of the report (0–1) and its components (None: not known)."""

    score: float
    level: ConfidenceLevel
    recommendation: str
    retrieval: float | None = None
    source: float | None = None
    extraction: float | None = None
    consistency: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the confidence in the wire format."""
        found = _rounded(self)
        head = {name: found.pop(name) for name in ("score", "level", "recommendation")}
        return head | {"parts": found}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the score and the contradictions in the wire format."""
        contradictions = [_values(each) | {"at": round(each.at, 3)} for each in self.contradictions]
        return {"score": rounded(self.score), "contradictions": contradictions}


@dataclass(frozen=True, slots=True)
class Risk:
    """The risk of acting on an answer (0–1), its factors, the heaviest first, and a recommendation."""

    score: float
    level: Severity
    factors: tuple[str, ...]
    recommendation: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the risk in the wire format."""
        return _rounded(self) | {"factors": list(self.factors)}


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of the schema of a JSON answer: its place, the expectation, and the type found."""

    field: str
    index: int | None
    expected: str
    found: str

    def to_dict(self) -> dict[str, Any]:
        """Return the violation in the wire format."""
        return {name: value for name, value in _values(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class QuoteCounts:
    """Quotations of one answer: the numbers extracted, found in a source, and rejected in total and by field."""

    extracted: int
    validated: int
    rejected: int
    rejected_by_field: tuple[tuple[str, int], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the counts in the wire format."""
        return _values(self) | {"rejected_by_field": dict(self.rejected_by_field)}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the flagged numbers in the wire format."""
        return {
            "total_claims": self.total_claims,
            "verified_claims": self.verified_claims,
            "unverified_claims": self.unverified_claims,
            "not_checked": self.not_checked,
            "confidence_adjustment": self.confidence_adjustment,
            "flagged": [{"choice": choice, "id": claim, **_values(number)} for choice, claim, number in self.flagged],
        }


@dataclass(frozen=True, slots=True)
class CacheUse:
    """Verdicts taken from the cache and newly computed, and the age in seconds of the oldest cached one."""

    hits: int = 0
    misses: int = 0
    oldest_s: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the counts in the wire format."""
        return _rounded(self)


@dataclass(frozen=True, slots=True)
class StageUse:
    """The number of claims that reached one stage of the cascade, and its cost."""

    stage: Literal["deterministic", "embedded", "judge", "model"]
    claims: int
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ms: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the stage in the wire format."""
        return _values(self) | {"ms": round(self.ms, 2)}


@dataclass(frozen=True, slots=True)
class SampledClaim:
    """Agreement of the samples with one claim: `votes` in their order, 1 the same, ½ unrelated, 0 otherwise.

    A vote is None if the sample failed; `variance` (0–1) is their mean squared deviation from the claim.
    """

    choice: int
    claim: str
    votes: tuple[float | None, ...]
    variance: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the votes in the wire format."""
        found = {"choice": self.choice, "id": self.claim, "votes": list(self.votes)}
        return found | {"variance": rounded(self.variance)}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the agreement in the wire format."""
        asked = {"status": self.status, "samples": self.asked, "temperatures": list(self.temperatures)}
        if self.status == "pending":
            return asked
        return {
            **asked,
            "answered": self.answered,
            "risk": rounded(self.risk),
            "claims": [each.to_dict() for each in self.claims],
            "usage": {
                "calls": self.calls,
                "prompt_tokens": self.prompt_tokens,
                "completion_tokens": self.completion_tokens,
            },
            **({"reasons": list(self.reasons)} if self.reasons else {}),
        }


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

    def to_dict(self) -> dict[str, Any]:
        """Return the correction in the wire format."""
        if self.status == "pending":
            return {"status": self.status}
        return {
            "status": self.status,
            "answer": self.answer,
            **({} if self.violations is None else {"violations": [each.to_dict() for each in self.violations]}),
            "usage": {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens},
            **({"reason": self.reason} if self.reason else {}),
        }


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

    def to_dict(self) -> dict[str, Any]:
        """Return the counts in the wire format."""
        counts = {"reported_tokens": self.reported, "at_least_tokens": self.at_least}
        return counts | {"truncated": self.is_truncated}


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

    def to_dict(self, units: Utf16 | None = None) -> GroundingReport:
        """Return the report in the wire format, as JSON values.

        Offsets are in code points, or in UTF-16 units if `units` is given. A report without verdicts yet has only the
        members up to `warnings`.
        """
        head = {
            "id": self.id,
            "version": VERSION,
            "status": self.status,
            "verdict": self.verdict,
            "score": rounded(self.score),
            "offset_unit": "utf16" if units else "codepoint",
            "flags": list(self.flags),
            "warnings": list(self.warnings),
        }
        is_open = self.status == "pending" or (self.status == "deferred" and not self.degraded)
        return cast("GroundingReport", head if is_open else head | self._findings(units))

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the report in the wire format, as JSON text."""
        return to_json(self.to_dict(), indent)

    def _findings(self, units: Utf16 | None) -> dict[str, Any]:
        """Return all other members in their order; a missing value leaves its member out."""
        found = {
            "coverage": self.coverage and self.coverage.to_dict(),
            "confidence": self.confidence and self.confidence.to_dict(),
            "risk": self.risk and self.risk.to_dict(),
            "quality": rounded(self.quality),
            "sources": [render_source(source) for source in self.sources],
            "prompt": self.prompt and self.prompt.to_dict(),
            "choices": [choice.to_dict(units) for choice in self.choices],
            "consistency": self.consistency and self.consistency.to_dict(),
            "quotes": self.quotes and self.quotes.to_dict(),
            "schema": None if self.violations is None else {"violations": [each.to_dict() for each in self.violations]},
            "numeric": self.numeric and self.numeric.to_dict(),
            "cache": self.cache.to_dict(),
            "correction": self.correction and self.correction.to_dict(),
            "self_consistency": self.self_consistency and self.self_consistency.to_dict(),
            "stages": [stage.to_dict() for stage in self.stages] or None,
            "timing_ms": {name: round(value, 2) for name, value in self.timing_ms},
            "degraded": [{"verifier": verifier, "reason": reason} for verifier, reason in self.degraded],
            "attempts": [_values(attempt) for attempt in self.attempts] or None,
            "config": self.config,
        }
        return {name: value for name, value in found.items() if value is not None}
