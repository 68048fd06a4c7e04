"""Compute the confidence in a verdict and in a whole answer, as the weighted mean of four parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields, replace

from groundwire.domain import Choice, ConfidenceParts, Judgement, Verdict
from groundwire.evidence.index import Context
from groundwire.policy import Policy
from groundwire.report import Confidence

UNHEARD = 0.8
"""The factor on the confidence in a verdict if a model was queried and gave no answer."""

_LEVELS = ((0.9, "very_high"), (0.75, "high"), (0.6, "medium"), (0.4, "low"), (0.0, "very_low"))


def with_confidence(
    judgement: Judgement,
    context: Context,
    policy: Policy,
    extraction: float | None = None,
    consistency: float | None = None,
) -> Judgement:
    """Return a judgement with the confidence in its verdict, from the parts that are known.

    `extraction` (0–1) is the certainty of the answering model, `consistency` (0–1) the agreement of the claim with
    earlier answers. The confidence in an unchecked claim is 0, or None if the policy computes none.
    """
    verdict = judgement.verdict
    if verdict.label == "not_checked" or not policy.has_confidence:
        return replace(judgement, confidence=0.0 if policy.has_confidence else None, parts=None)
    certainty = verdict.score if verdict.label == "supported" else 1.0 - verdict.score
    source = source_weight(verdict, context, policy) if verdict.citations else None
    parts = ConfidenceParts(certainty, source, extraction, consistency)
    is_unheard = judgement.budget is not None and judgement.budget.missing is not None
    return replace(judgement, confidence=_combined(parts, policy) * (UNHEARD if is_unheard else 1.0), parts=parts)


def of_answer(
    judgements: Sequence[Judgement],
    context: Context,
    policy: Policy,
    extraction: float | None = None,
    consistency: float | None = None,
) -> Confidence | None:
    """Return the confidence in an answer from the parts that are known, None if nothing was checked.

    `extraction` (0–1) is the certainty of the answering model, `consistency` (0–1) the agreement of the answer with
    earlier ones on its subject. The recommendation is left empty.
    """
    checked = [judgement.verdict for judgement in judgements if judgement.verdict.label != "not_checked"]
    if not checked or not policy.has_confidence:
        return None
    parts = ConfidenceParts(
        _mean([verdict.score for verdict in checked]),
        _mean([source_weight(verdict, context, policy) for verdict in checked]),
        extraction,
        consistency,
    )
    value = _combined(parts, policy)
    level = next(level for least, level in _LEVELS if value >= least)
    return Confidence(value, level, "", *astuple(parts))  # type: ignore[arg-type]


def source_weight(verdict: Verdict, context: Context, policy: Policy) -> float:
    """Return the weight of the most reliable source that a verdict cites, 1 if it cites none."""
    weights = dict(policy.source_weights)
    cited = {citation.source for citation in verdict.citations}
    kinds = {source.id: source.kind for source in context.sources if source.id in cited} if cited else {}
    return max((weights.get(kinds.get(id_, ""), 1.0) for id_ in cited), default=1.0)


def extraction(choices: Sequence[Choice], temperature: float | None) -> float | None:
    """Return the answering model's certainty: its mean token probability, else 1 − temperature/2, else None."""
    certainties = [choice.certainty for choice in choices if choice.certainty is not None]
    if certainties:
        return _mean(certainties)
    return None if temperature is None else max(0.0, 1.0 - temperature / 2)


def _combined(parts: ConfidenceParts, policy: Policy) -> float:
    """Return the weighted mean of the known parts, or the retrieval part if all weights are zero."""
    weights = dict(policy.confidence_weights)
    given = {field.name: getattr(parts, field.name) for field in fields(parts)}
    known = [(weights.get(name, 0.0), value) for name, value in given.items() if value is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * part for weight, part in known) / total if total else parts.retrieval or 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
