"""One claim that somebody puts forward with its evidence: p1 and p0 from an estimator, both told in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from proxy.evidence.estimator import Estimator
from proxy.types import Budget, Claim, Method, Source, Unavailable
from proxy.verification.information.budget import TARGETS, measure, unasked
from proxy.verification.information.cascade import unknown_citations
from proxy.verification.information.scrub import scrub_all

TargetOf = Callable[[Method], float]
"""The belief that a claim must reach, by how its probability is known."""


async def measured(
    claim: Claim, sources: Sequence[Source], estimator: Estimator, target_of: TargetOf = TARGETS.__getitem__
) -> Budget:
    """The budget of a claim that all of its evidence is cited for: p0 has nothing of that left but its structure."""
    unknown = await asyncio.to_thread(unknown_citations, claim, sources) if claim.cited else ()
    if nothing := unasked(has_context=any(source.text.strip() for source in sources), unknown=unknown):
        return nothing
    p1 = await estimator.estimate_probability(claim, sources)
    if isinstance(p1, Unavailable):
        return measure(p1)
    p0 = await estimator.estimate_probability(claim, await asyncio.to_thread(scrub_all, sources))
    return measure(p1, p0, target=target_of(p1.method))
