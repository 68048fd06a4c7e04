"""Estimate the support for an assertion with the embedded verifier, and apply measured budgets to judgements.

The label decides: the probability is the calibrated score, limited to the label's side of the target, and even odds if
no source mentions the claim, because the verifier has no knowledge of the world. A missing answer of a model never
overrules an earlier decision: an undecided budget leaves the verdict unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from groundwire.claims.answer import find_claims
from groundwire.domain import (
    Budget,
    Cause,
    Citation,
    Claim,
    Estimate,
    Judgement,
    Label,
    Method,
    Probability,
    Source,
    Unavailable,
    Verdict,
)
from groundwire.evidence.index import Context
from groundwire.features.probe import exactly
from groundwire.features.scrub import scrub_all
from groundwire.judge import GRAVITY, UNANSWERED, Judge, skipped
from groundwire.policy import ModelPolicy, Policy
from groundwire.scoring.aggregate import UNHEARD, support, with_confidence
from groundwire.scoring.budget import LABELS, TARGETS, measure, target_of, towards, unasked
from groundwire.scoring.budget import TARGET as HIGHEST_TARGET

VERIFIER = "model"
_CONTRADICTED = 0.5

_REASONS: Mapping[Cause, str] = {
    "timeout": "No model answered in time.",
    "rate_limited": "The model server limited the rate of requests.",
    "overload": "No model was asked because the proxy is overloaded.",
    "unreachable": "No model could be reached.",
    "error": "Asking a model failed.",
}
_UNCLEAR = "The model answered neither yes nor no."


def is_undecided(judgement: Judgement, policy: ModelPolicy) -> bool:
    """Return whether no exact check decides a claim, and its probability of support is in the policy's band."""
    if judgement.verdict.label not in ("supported", "unsupported"):
        return False
    lexical = next((each for each in judgement.verdicts if each.verifier == "statement"), None)
    if lexical is None or lexical.method == "exact" or lexical.label not in ("supported", "unsupported"):
        return False
    others = (each.label for each in judgement.verdicts if each is not lexical)
    return (
        all(label == "supported" for label in others)
        and policy.probability_min <= lexical.score < policy.probability_max
    )


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
        return Verdict(VERIFIER, label, 0.0, UNANSWERED.get(cause, "no_verdict"), _REASONS.get(cause, _UNCLEAR))
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


TARGET = TARGETS["verifier"]
_EVEN = 0.5


def assertion(text: str, id_: str = "c1", lead: str = "") -> Claim:
    """Read a text as one claim, with its `lead`; `skip_reason` is set if it asserts nothing.

    It may contain several statements; `judge_assertion` requires all of them.
    """
    parts = find_claims(text, Policy(verify_hedged=True)).claims
    is_idle = all(part.skip_reason for part in parts)
    reason = (parts[0].skip_reason if parts else "no_content") if is_idle else None
    cited = tuple(dict.fromkeys(label for part in parts for label in part.cited))
    confidence = min((part.stated_confidence for part in parts), default=1.0)
    kind = parts[0].kind if len(parts) == 1 else "statement"
    return Claim(id_, text, 0, len(text), kind, lead, cited, confidence, reason)


def judge_assertion(claim: Claim, context: Context, policy: Policy, judge: Judge = Judge()) -> Judgement:
    """Return one judgement on all statements of a claim: the most serious label, with all evidence for that label."""
    if not claim.is_judged:
        return skipped(claim)
    whole = replace(policy, verify_hedged=True)
    parts = [part for part in find_claims(claim.text, whole).claims if part.is_judged]
    if len(parts) < 2:
        return judge.one(claim, context, policy)
    parts = [replace(part, lead=part.lead or claim.lead) for part in parts]
    judged = [judge.one(part, context, policy) for part in parts]
    judged = [each for each in judged if not each.is_skipped] or judged
    gravest = max(judged, key=lambda each: (GRAVITY[each.verdict.label], -support(each)))
    agreeing = [each for each in judged if each.verdict.label == gravest.verdict.label]
    cited = tuple(dict.fromkeys(citation for each in agreeing for citation in each.verdict.citations))
    return replace(gravest, claim=claim, verdict=replace(gravest.verdict, citations=cited))


def targets_of(stated: float | None) -> Callable[[Method], float]:
    """Return the belief that evidence must reach for a claim, by method: the stated confidence, limited to its range.

    The embedded verifier reaches it if a source states the claim word for word.
    """

    def target(method: Method) -> float:
        if stated is None:
            return TARGETS[method]
        return min(max(stated, TARGET), HIGHEST_TARGET) if method == "verifier" else target_of(stated, method)

    return target


def prove(
    claim: Claim,
    sources: Sequence[Source],
    policy: Policy,
    judge: Judge = Judge(),
    target: float = TARGET,
) -> Judgement:
    """Judge a claim against the sources and measure its budget: p1 with the sources, p0 with only their structure."""
    context = Context(sources)
    return with_budget(
        judge_assertion(claim, context, policy, judge),
        context,
        Context(scrub_all(sources)),
        policy,
        judge,
        target,
    )


def with_budget(
    judgement: Judgement,
    context: Context,
    scrubbed: Context,
    policy: Policy,
    judge: Judge = Judge(),
    target: float = TARGET,
) -> Judgement:
    """Add the budget to a judgement against a context, with p0 from the scrubbed context.

    The bits refer to the `target`; the status follows the label.
    """
    claim = judgement.claim
    if claim.skip_reason is None:
        unknown = cited_evidence(claim, context)[1]
        if nothing := unasked(has_context=bool(context.passages), unknown=unknown):
            return replace(judgement, budget=nothing)
    p0 = _prior(judge_assertion(claim, scrubbed, policy, judge))
    budget = towards(measure(believed(judgement), p0, target=TARGET), target)
    return replace(judgement, budget=replace(budget, reason=judgement.verdict.reason))


def _prior(judgement: Judgement) -> Estimate:
    """Return the probability of a claim by a scrubbed context, which states nothing that could contradict it."""
    return exactly(_EVEN) if judgement.verdict.label == "contradicted" else believed(judgement)


def believed(judgement: Judgement) -> Estimate:
    """Return the probability of a claim (0–1), on its label's side of the target; even odds if no source mentions it.

    A score alone is no probability: it is as low for claims that no source mentions as for contradicted ones.
    """
    score = support(judgement)
    match judgement.verdict.label:
        case "supported":
            return exactly(max(score, TARGET))
        case "contradicted":
            return exactly(min(score, 1.0 - TARGET))
        case "unsupported":
            return exactly(_EVEN)
    return Unavailable("no_verdict")
