"""Judge a claim in the last stage: query a model if lexical matching leaves it undecided, and apply the answer.

A missing answer never overrules an earlier decision: an undecided budget leaves the verdict unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from groundwire.domain import Budget, Cause, Citation, Claim, Judgement, Label, Probability, Source, Verdict
from groundwire.evidence.index import Context
from groundwire.policy import ModelPolicy, Policy
from groundwire.scoring.aggregate import UNHEARD, with_confidence
from groundwire.scoring.budget import LABELS

VERIFIER = "model"
_CONTRADICTED = 0.5

_METHODS: Mapping[Cause, str] = {
    "timeout": "timeout",
    "rate_limited": "rate_limited",
    "overload": "overload",
    "unreachable": "unavailable",
    "error": "error",
}
_TOLD: Mapping[Cause, str] = {
    "timeout": "No model answered in time.",
    "rate_limited": "The model's server asked for fewer questions.",
    "overload": "There was no room to ask under the present load.",
    "unreachable": "No model could be reached.",
    "error": "Asking a model failed.",
}
_UNCLEAR = "The model said neither yes nor no."


def is_undecided(judgement: Judgement, policy: ModelPolicy) -> bool:
    """Return whether no exact check decides a claim, and its probability of support is in the policy's band."""
    if judgement.verdict.label not in ("supported", "unsupported"):
        return False
    worded = next((each for each in judgement.verdicts if each.verifier == "statement"), None)
    if worded is None or worded.method == "exact" or worded.label not in ("supported", "unsupported"):
        return False
    others = (each.label for each in judgement.verdicts if each is not worded)
    return all(label == "supported" for label in others) and policy.asked_from <= worded.score < policy.asked_below


def cited_evidence(claim: Claim, context: Context) -> tuple[tuple[Citation, ...], tuple[str, ...]]:
    """Return the sources that a claim cites, each as one citation of its whole text, and the labels of no source."""
    named = {label: context.resolve(label) for label in claim.cited}
    sources = {source.id: source for source in named.values() if source}
    return tuple(map(_whole, sources.values())), tuple(label for label, source in named.items() if source is None)


def unknown_citations(claim: Claim, sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the labels that a claim cites and that name none of the sources."""
    return cited_evidence(claim, Context(sources))[1]


def joined(judgement: Judgement, budget: Budget, context: Context, policy: Policy) -> Judgement:
    """Add a measured budget to a judgement; a decided budget replaces its verdict.

    A budget of the embedded verifier changes no label, because its verdict is known already. None overrules a
    contradiction by numbers, names or negations of a source: text in a source may persuade a model, but not these
    checks. If there was no answer in time, the confidence in the verdict is reduced.
    """
    measured = replace(judgement, budget=budget)
    if policy.model.backend == "local" and budget.missing is None:
        return measured
    verdict = _verdict(judgement.verdict, budget)
    measured = replace(measured, verdicts=(*judgement.verdicts, verdict))
    if budget.missing is not None:
        return replace(measured, confidence=judgement.confidence and judgement.confidence * UNHEARD)
    if judgement.verdict.label == "contradicted":
        return replace(measured, budget=judgement.budget or budget)
    if verdict.label == "not_checked":
        return measured
    return with_confidence(replace(measured, verdict=verdict), context, policy)


def label_of(budget: Budget) -> Label:
    """Return the label of a budget.

    A claim whose whole interval of p1 is below the target is unsupported, even if its status is undecided. Disbelief
    may also mean that the context does not mention the claim. It is a contradiction only if a service or the embedded
    verifier reports it, or if a model firmly believes the claim without the evidence.
    """
    if budget.status == "contradicted" and budget.p1 is not None and not _is_opposed(budget, budget.p1):
        return "unsupported"
    is_disbelieved = budget.p1 is not None and budget.p1.upper < budget.target
    return "unsupported" if budget.status == "ambiguous" and is_disbelieved else LABELS[budget.status]


def _is_opposed(budget: Budget, p1: Probability) -> bool:
    """Return whether evidence contradicts a claim with this status, rather than not mentioning it."""
    if p1.method == "service":
        return (p1.contradiction or 0.0) > _CONTRADICTED
    return p1.method == "verifier" or (budget.p0 is not None and budget.p0.lower >= budget.target)


def _verdict(before: Verdict, budget: Budget) -> Verdict:
    label = label_of(budget)
    if budget.missing is not None:
        cause = budget.missing.cause
        return Verdict(VERIFIER, label, 0.0, _METHODS.get(cause, "no_verdict"), _TOLD.get(cause, _UNCLEAR))
    score = budget.p1.value if budget.p1 and label != "not_checked" else 0.0
    citations = tuple(replace(each, match="model") for each in before.citations) if label != "not_checked" else ()
    is_supported = int(label == "supported")
    return Verdict(VERIFIER, label, round(score, 4), budget.status, _reason(budget), citations, (), 1, is_supported)


def _reason(budget: Budget) -> str:
    if budget.p1 is None:
        return budget.reason
    without = f" and {budget.p0.value:.0%} without" if budget.p0 else ""
    return f"{budget.reason} A model gives it {budget.p1.value:.0%} with the evidence{without}."


def _whole(source: Source) -> Citation:
    return Citation(source.id, source.offset, source.offset + len(source.text), source.text, 1.0, "exact")
