"""The embedded verifier as an estimator: what its verdict amounts to as a probability, at no call and no cost (IB5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from proxy.errors import Overload
from proxy.types import Claim, Estimate, Policy, Source, Unavailable
from proxy.verification.context.index import Context
from proxy.verification.information.worded import believed
from proxy.verification.judge import Judge

Run = Callable[[Callable[[], Sequence[Estimate]]], Awaitable[Sequence[Estimate]]]
"""Runs a job of the processor's off the event loop; raises Overload when there is no room for it."""


class EmbeddedEstimator:
    """Asks no model; see `Estimator`. `until` is when its time is over (loop time)."""

    def __init__(self, run: Run, policy: Policy, until: float, judge: Judge = Judge()) -> None:
        self._run = run
        self._policy = policy
        self._until = until
        self._judge = judge

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """The probability that the sources support one claim."""
        (estimate,) = await self.batch_estimate([claim], context)
        return estimate

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """The probabilities that the sources support several claims."""
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
    """How likely the sources support each claim; see `believed`."""
    context = Context(sources)
    return [believed(judge.one(claim, context, policy)) for claim in claims]
