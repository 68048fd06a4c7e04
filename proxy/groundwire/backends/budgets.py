"""Estimate the probabilities from which the information budgets of claims are computed (`groundwire.domain.Budget`).

p1 is estimated for every claim, p0 only where it can affect the result. For a supported claim with several citations,
the effect of each citation is estimated as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from groundwire.domain import Budget, Citation, Claim, Estimate, Method, Probability, Source, Unavailable
from groundwire.features.information_budget import leave_one_out, scrub, scrub_all, unknown_citations
from groundwire.scoring.budget import (
    TARGET,
    TARGETS,
    Ablation,
    are_alike,
    claim_target,
    measure,
    needs_p0,
    towards,
    unasked,
)


class Estimator(Protocol):
    """Estimates for one operation, such as the verification of one answer.

    Raises nothing but cancellation: a missing probability is returned with its cause.
    """

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """Return the probability that a claim is true, given these sources and nothing else."""

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """Return the probabilities of several claims on one context, in their order."""


@dataclass(frozen=True, slots=True)
class Cited:
    """A claim and the evidence that it cites. Without citations it relies on the whole context.

    `unknown` are cited labels that belong to no source.
    """

    claim: Claim
    citations: tuple[Citation, ...] = ()
    unknown: tuple[str, ...] = ()


async def budgets(
    cited_claims: Sequence[Cited], sources: Sequence[Source], estimator: Estimator, threshold_bits: float = 0.0
) -> list[Budget]:
    """Return the budget of each claim, in order. For p0, claims with the same citations are estimated together.

    The target of a claim is its stated confidence. A gap over `threshold_bits` raises a flag. p0 is estimated only if
    the status or the flag depends on it.
    """
    found = {place: unasked(has_context=bool(sources), unknown=each.unknown) for place, each in enumerate(cited_claims)}
    to_ask = {place: cited_claims[place] for place, budget in found.items() if budget is None}
    claims = [each.claim for each in to_ask.values()]
    p1 = dict(zip(to_ask, await estimator.batch_estimate(claims, sources), strict=True)) if claims else {}
    wanting = {
        place: each
        for place, each in to_ask.items()
        if needs_p0(p1[place], _target(each.claim, p1[place]), threshold_bits)
    }
    p0 = await _p0(wanting, sources, estimator)
    measured = {place: _measure(each.claim, p1[place], p0.get(place)) for place, each in to_ask.items()}
    several = {
        place: each
        for place, each in wanting.items()
        if measured[place].status == "supported" and len(each.citations) > 1
    }
    ablated = await asyncio.gather(*(_ablated(each, sources, p1[at], estimator) for at, each in several.items()))
    for place, ablations in zip(several, ablated, strict=True):
        measured[place] = _measure(to_ask[place].claim, p1[place], p0[place], ablations)
    return [found[place] or measured[place] for place in found]


def _measure(claim: Claim, p1: Estimate, p0: Estimate | None, ablations: Sequence[Ablation] = ()) -> Budget:
    """Return the budget towards the stated confidence.

    A hedge makes a claim easier to support, not to contradict: a contradiction must reach the target of the method.
    """
    target = _target(claim, p1)
    budget = measure(p1, p0, ablations, target)
    if budget.status != "contradicted" or not isinstance(p1, Probability):
        return budget
    unhedged = measure(p1, p0, target=TARGETS[p1.method])
    return unhedged if unhedged.status == "contradicted" else towards(unhedged, target)


def _target(claim: Claim, p1: Estimate) -> float:
    """Return the target that p1 must reach for a claim."""
    return claim_target(claim, p1.method) if isinstance(p1, Probability) else TARGET


async def _p0(
    cited_claims: Mapping[int, Cited], sources: Sequence[Source], estimator: Estimator
) -> Mapping[int, Estimate]:
    """Estimate probabilities without the cited evidence, or without any evidence if nothing is cited."""
    alike: dict[tuple[Citation, ...], list[int]] = {}
    for place, each in cited_claims.items():
        alike.setdefault(each.citations, []).append(place)

    async def together(citations: tuple[Citation, ...], places: Sequence[int]) -> Mapping[int, Estimate]:
        removed = (scrub, sources, citations) if citations else (scrub_all, sources)
        scrubbed = await asyncio.to_thread(*removed)
        claims = [cited_claims[place].claim for place in places]
        return dict(zip(places, await estimator.batch_estimate(claims, scrubbed), strict=True))

    found = await asyncio.gather(*(together(*each) for each in alike.items()))
    return {place: estimate for group in found for place, estimate in group.items()}


async def _ablated(cited: Cited, sources: Sequence[Source], p1: Estimate, estimator: Estimator) -> tuple[Ablation, ...]:
    """Estimate the probability without each citation and, if it stays in the band of p1, with that citation alone."""
    contexts = await asyncio.to_thread(leave_one_out, sources, cited.citations)

    async def one(without: Sequence[Source], alone: Sequence[Source]) -> Ablation:
        left = await estimator.estimate_probability(cited.claim, without)
        if not are_alike(p1, left, _target(cited.claim, p1)):
            return Ablation(left)
        return Ablation(left, await estimator.estimate_probability(cited.claim, alone))

    return tuple(await asyncio.gather(*(one(each.without, each.alone) for each in contexts)))


TargetOf = Callable[[Method], float]
"""The probability that a claim must reach, by the method of its estimate."""


async def measured(
    claim: Claim, sources: Sequence[Source], estimator: Estimator, target_of: TargetOf = TARGETS.__getitem__
) -> Budget:
    """Return the budget of a claim that cites all of its evidence: for p0 the evidence is reduced to its structure."""
    unknown = await asyncio.to_thread(unknown_citations, claim, sources) if claim.cited else ()
    if nothing := unasked(has_context=any(source.text.strip() for source in sources), unknown=unknown):
        return nothing
    p1 = await estimator.estimate_probability(claim, sources)
    if isinstance(p1, Unavailable):
        return measure(p1)
    p0 = await estimator.estimate_probability(claim, await asyncio.to_thread(scrub_all, sources))
    return measure(p1, p0, target=target_of(p1.method))
