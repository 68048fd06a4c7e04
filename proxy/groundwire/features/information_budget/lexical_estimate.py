"""Judge one assertion with the embedded verifier and measure its budget, without calls to a model.

The label decides: the probability is the calibrated score, limited to the label's side of the target, and even odds if
no source mentions the claim, because the verifier has no knowledge of the world.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from groundwire.claims.answer import find_claims
from groundwire.domain import Claim, Estimate, Judgement, Method, Source, Unavailable
from groundwire.evidence.index import Context
from groundwire.features.information_budget.cascade import cited_evidence
from groundwire.features.information_budget.probability import exactly
from groundwire.features.information_budget.scrub import scrub_all
from groundwire.judge import GRAVITY, Judge, unjudged
from groundwire.policy import Policy
from groundwire.scoring.aggregate import support
from groundwire.scoring.budget import TARGET as HIGHEST_TARGET
from groundwire.scoring.budget import TARGETS, measure, target_of, towards, unasked

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
    if claim.skip_reason:
        return unjudged(claim, "skipped", "")
    whole = replace(policy, verify_hedged=True)
    parts = [part for part in find_claims(claim.text, whole).claims if part.skip_reason is None]
    if len(parts) < 2:
        return judge.one(claim, context, policy)
    parts = [replace(part, lead=part.lead or claim.lead) for part in parts]
    judged = [judge.one(part, context, policy) for part in parts]
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
