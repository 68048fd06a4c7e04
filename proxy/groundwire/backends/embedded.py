"""An estimator that converts verdicts of the embedded verifier to probabilities."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from groundwire.domain import Claim, Estimate, Source, Unavailable
from groundwire.errors import Overload
from groundwire.evidence.index import Context
from groundwire.features.information_budget.lexical_estimate import believed
from groundwire.judge import Judge
from groundwire.policy import Policy

Run = Callable[[Callable[[], Sequence[Estimate]]], Awaitable[Sequence[Estimate]]]
"""Run a CPU-bound job off the event loop; raises Overload when there is no capacity."""


class EmbeddedEstimator:
    """An `Estimator` that runs in this process. `until` is the deadline on the clock of the event loop."""

    def __init__(self, run: Run, policy: Policy, until: float, judge: Judge = Judge()) -> None:
        self._run = run
        self._policy = policy
        self._until = until
        self._judge = judge

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """Return the probability that the sources support one claim."""
        (estimate,) = await self.batch_estimate([claim], context)
        return estimate

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """Return the probabilities that the sources support several claims."""
        try:
            async with asyncio.timeout_at(self._until):
                return await self._run(lambda: probabilities(claims, context, self._policy, self._judge))
        except TimeoutError:
            return [Unavailable("timeout")] * len(claims)
        except Overload:
            return [Unavailable("overload")] * len(claims)


def probabilities(
    claims: Sequence[Claim],
    sources: Sequence[Source],
    policy: Policy,
    judge: Judge = Judge(),
) -> list[Estimate]:
    """Judge each claim by the sources, and return its probability as defined by `believed`."""
    context = Context(sources)
    return [believed(judge.one(claim, context, policy)) for claim in claims]
