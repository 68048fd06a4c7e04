"""The checks of the proxy as functions on text, for those who have an answer and its sources at hand.

A context is a text, a `Source`, or several of either. Nothing here does I/O or needs a model.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from proxy.errors import EvidenceSchemaError
from proxy.types import Choice, Claim, NumericPolicy, Policy, QuotePolicy, Report, Source, Verdict
from proxy.verification import numeric, quote
from proxy.verification.claims.answer import find_claims as _find_claims
from proxy.verification.context.index import Context
from proxy.verification.examine import Ask, verify
from proxy.verification.quotation import find_quotes
from proxy.verification.quote import QuoteResult
from proxy.verification.schema import read_evidence

Evidence = str | Source | Iterable[str | Source]


def verify_claims(
    text: str,
    context: Evidence,
    *,
    policy: Policy = Policy(),
    question: str = "",
    evidence_fields: Sequence[str] = (),
    json_schema: Mapping[str, Any] | None = None,
) -> Report:
    """The report on an answer: which of its claims the context supports, contradicts or does not mention.

    It is the same report as the proxy gives. An answer that is a bare number is read with the `question`.
    `evidence_fields` name fields of a JSON answer that hold quotations; breaches of their shape, or of `json_schema`,
    are violations in the report, never exceptions.
    """
    ask = Ask(tuple(evidence_fields), json_schema, question)
    return verify([Choice(0, text, "stop")], _context(context), policy, ask)


def find_claims(text: str, policy: Policy = Policy()) -> tuple[Claim, ...]:
    """The atomic claims of an answer, with their spans; those that assert nothing carry a `skip_reason`."""
    return _find_claims(text, policy).claims


def check_quotes(
    text: str, context: Evidence, *, policy: QuotePolicy = QuotePolicy(), fail_on_all_rejected: bool | None = None
) -> QuoteResult:
    """Which quotations of a text stand in the context, under the field name "text".

    Raises EvidenceGroundingError when `fail_on_all_rejected` (by default as the policy says) and there are quotations
    but none stands there (QU6).
    """
    quotes = {"text": [found.text for found in find_quotes(text)]}
    return quote.check_quotes(
        quotes, _context(context), policy, fail_on_all_rejected=_fails(fail_on_all_rejected, policy)
    )


def check_evidence(
    answer: str | Mapping[str, Any],
    fields: Sequence[str],
    context: Evidence,
    *,
    policy: QuotePolicy = QuotePolicy(),
    fail_on_all_rejected: bool | None = None,
) -> QuoteResult:
    """Which quotations of a JSON answer's evidence fields stand in the context, field by field.

    Raises EvidenceSchemaError, with every violation, when a field is not a list of strings (ES2), and
    EvidenceGroundingError as `check_quotes` does. ValueError: the answer is no JSON.
    """
    quotes, violations = read_evidence(json.loads(answer) if isinstance(answer, str) else answer, fields)
    if violations:
        raise EvidenceSchemaError(violations)
    return quote.check_quotes(
        quotes, _context(context), policy, fail_on_all_rejected=_fails(fail_on_all_rejected, policy)
    )


@dataclass(frozen=True, slots=True)
class NumericResult:
    """What checking the numbers of an answer came to (NU5).

    `judged` pairs every claim that holds a number with its verdict; `flagged` are those that are not supported.
    `confidence_adjustment` is what a stated confidence changes by (−0.2 is −20 %); `ms` the time it took.
    """

    judged: tuple[tuple[Claim, Verdict], ...]
    confidence_adjustment: float
    ms: float

    @property
    def total_claims(self) -> int:
        """Claims with numbers."""
        return len(self.judged)

    @property
    def verified_claims(self) -> int:
        """Those whose numbers all stand in the context, or follow from it."""
        return sum(verdict.label == "supported" for _, verdict in self.judged)

    @property
    def unverified_claims(self) -> int:
        """All others."""
        return self.total_claims - self.verified_claims

    @property
    def flagged(self) -> tuple[Claim, ...]:
        """The claims whose numbers were checked and are not supported."""
        return tuple(claim for claim, verdict in self.judged if verdict.label in ("unsupported", "contradicted"))


def check_numbers(text: str, context: Evidence, *, policy: NumericPolicy = NumericPolicy()) -> NumericResult:
    """Which numbers of an answer stand in the context, or follow from numbers that do."""
    start = time.perf_counter()
    whole, sources = Policy(verifiers=("numeric",), numeric=policy), _context(context)
    claims = (claim for claim in find_claims(text, whole) if claim.skip_reason is None)
    found = ((claim, numeric.verify(claim, sources, whole)) for claim in claims)
    judged = tuple((claim, verdict) for claim, verdict in found if verdict is not None)
    unverified = any(verdict.label != "supported" for _, verdict in judged)
    return NumericResult(
        judged, -policy.confidence_penalty if unverified else 0.0, (time.perf_counter() - start) * 1000
    )


def adjust_confidence(original: float, report: Report) -> float:
    """A stated confidence (0–1) after what was found: less by the penalty when any number is not verified (CF2)."""
    adjustment = report.numeric.confidence_adjustment if report.numeric else 0.0
    return max(0.0, min(1.0, original * (1.0 + adjustment)))


def _fails(asked: bool | None, policy: QuotePolicy) -> bool:
    return policy.fail_on_all_rejected if asked is None else asked


def _context(evidence: Evidence) -> Context:
    given = [evidence] if isinstance(evidence, (str, Source)) else list(evidence)
    return Context(
        Source(f"source-{number}", "source", each, labels=(str(number),)) if isinstance(each, str) else each
        for number, each in enumerate(given, start=1)
    )
