"""Measure the budget of one claim with explicit evidence: both p1 and p0, in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from groundwire.backends.estimator import Estimator
from groundwire.domain import Budget, Claim, Method, Source, Unavailable
from groundwire.features.information_budget.cascade import unknown_citations
from groundwire.features.information_budget.scrub import scrub_all
from groundwire.scoring.budget import TARGETS, measure, unasked

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
