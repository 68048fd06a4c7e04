"""How far a verdict, and a whole report, is to be relied on (CF1). Not calibrated yet: see the README's limits."""

from __future__ import annotations

from collections.abc import Sequence

from proxy.types import Choice, Confidence, Judgement, Policy, Verdict
from proxy.verification.context.index import Context

_LEVELS = (
    (0.9, "very_high", "Use the answer."),
    (0.75, "high", "Use the answer."),
    (0.6, "medium", "Use the answer, and look at the claims that are not supported."),
    (0.4, "low", "Have the answer checked before it is used."),
    (0.0, "very_low", "Do not rely on the answer."),
)


def of_claim(verdict: Verdict, context: Context, policy: Policy) -> float:
    """How sure a verdict is (0–1): its own certainty, weighed by how far its best source is to be relied on."""
    if verdict.label == "not_checked":
        return 0.0
    certainty = verdict.score if verdict.label == "supported" else 1.0 - verdict.score
    return certainty * source_weight(verdict, context, policy)


def of_answer(
    judgements: Sequence[Judgement],
    choices: Sequence[Choice],
    context: Context,
    policy: Policy,
    temperature: float | None,
    consistency: float | None = None,
) -> Confidence | None:
    """The weighted mean of the parts that are known; None when nothing was checked.

    `consistency` (0–1) is how far the answer agrees with earlier ones of its subject, None without such (CO2).
    """
    checked = [judgement.verdict for judgement in judgements if judgement.verdict.label != "not_checked"]
    if not checked:
        return None
    retrieval = _mean([verdict.score for verdict in checked])
    source = _mean([source_weight(verdict, context, policy) for verdict in checked])
    extraction = _extraction(choices, temperature)
    weights = dict(policy.confidence_weights)
    parts = (("retrieval", retrieval), ("source", source), ("extraction", extraction), ("consistency", consistency))
    known = [(weights.get(name, 0.0), value) for name, value in parts if value is not None]
    total = sum(weight for weight, _ in known)
    value = sum(weight * part for weight, part in known) / total if total else retrieval
    level, advice = next((level, advice) for least, level, advice in _LEVELS if value >= least)
    return Confidence(value, level, advice, retrieval, source, extraction, consistency)  # type: ignore[arg-type]


def source_weight(verdict: Verdict, context: Context, policy: Policy) -> float:
    """The weight of the most reliable source that a verdict cites; 1 when it cites none."""
    weights = dict(policy.source_weights)
    kinds = {source.id: source.kind for source in context.sources}
    return max((weights.get(kinds.get(citation.source, ""), 1.0) for citation in verdict.citations), default=1.0)


def _extraction(choices: Sequence[Choice], temperature: float | None) -> float | None:
    """How certain the answering model was: its mean token probability, else 1 − temperature/2, else unknown."""
    certainties = [choice.certainty for choice in choices if choice.certainty is not None]
    if certainties:
        return _mean(certainties)
    return None if temperature is None else max(0.0, 1.0 - temperature / 2)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
