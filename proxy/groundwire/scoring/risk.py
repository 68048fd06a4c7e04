"""Compute the risk of acting on an answer, and list its factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from groundwire.domain import Label, Severity
from groundwire.report import Report, Risk

_WEIGHTS = {"grounding": 0.9, "consistency": 0.6, "self_consistency": 0.6, "confidence": 0.4, "prompt": 0.25}
"""The maximum contribution of each part to the risk; only grounding can make it critical alone."""

_LEVELS: tuple[tuple[float, Severity], ...] = ((0.75, "critical"), (0.5, "high"), (0.3, "medium"), (0.0, "low"))
_TOLD = 0.05  # smaller parts are not listed as factors


@dataclass(frozen=True, slots=True)
class _Part:
    """The contribution of one part to the risk (0–1), and its reason in words."""

    amount: float
    reason: str


def assess_risk(report: Report) -> Risk | None:
    """Return the risk of an answer (0–1), or None if its report has no figure to compute it from.

    The parts are grounding, consistency, self-consistency, confidence, and the share of the prompt that the model read.
    They are treated as independent causes of harm: risk = 1 − ∏(1 − part). No part compensates for another, and the
    risk never falls when one of them rises.
    """
    parts = list(_parts(report))
    if not parts:
        return None
    score = 1.0 - math.prod(1.0 - part.amount for part in parts)
    level = next(level for least, level in _LEVELS if score >= least)
    heaviest = sorted(parts, key=lambda part: -part.amount)
    return Risk(score, level, tuple(part.reason for part in heaviest if part.amount >= _TOLD))


def _parts(report: Report) -> Iterator[_Part]:
    if part := _grounding([judgement.verdict.label for choice in report.choices for judgement in choice.judgements]):
        yield part
    history, samples = report.consistency, report.self_consistency
    if history and history.score is not None:
        count = len(history.contradictions)
        reason = (
            f"It contradicts earlier answers in {count} places." if count > 1 else "It contradicts an earlier answer."
        )
        yield _Part(_WEIGHTS["consistency"] * (1.0 - history.score), reason)
    if samples and samples.risk is not None:
        reason = f"Further answers to the same request differ from it (variance {samples.risk:.2f})."
        yield _Part(_WEIGHTS["self_consistency"] * samples.risk, reason)
    if report.prompt and report.prompt.is_truncated and report.prompt.reported is not None:
        read = report.prompt.reported / report.prompt.at_least
        reason = f"The model read at most {read:.0%} of its prompt."
        yield _Part(_WEIGHTS["prompt"] * (1.0 - read), reason)
    if report.confidence:
        reason = f"Confidence in it is {report.confidence.level.replace('_', ' ')} ({report.confidence.score:.2f})."
        yield _Part(_WEIGHTS["confidence"] * (1.0 - report.confidence.score), reason)


def _grounding(labels: Sequence[Label]) -> _Part | None:
    """Return the part for checked claims that are not supported; contradicted ones have double weight."""
    checked = sum(label != "not_checked" for label in labels)
    if not checked:
        return None
    unsupported, contradicted = labels.count("unsupported"), labels.count("contradicted")
    counts = ((unsupported, "not supported"), (contradicted, "contradicted"))
    told = " and ".join(f"{count} {'is' if count == 1 else 'are'} {what}" for count, what in counts if count)
    reason = f"Of {checked} checked claim{'s' if checked > 1 else ''}, {told or 'none is in doubt'}."
    return _Part(_WEIGHTS["grounding"] * min(1.0, (unsupported + 2 * contradicted) / checked), reason)
