"""Verify single claims with explicit evidence, by words and by the backend of the operation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import structlog

from groundwire.backends.estimator import Estimator
from groundwire.backends.measuring import TargetOf, measured
from groundwire.domain import Budget, Cause, Claim, Judgement, Operation, Source, Unavailable
from groundwire.errors import BadRequest, Overload
from groundwire.evidence.index import Context
from groundwire.features.information_budget.cascade import joined
from groundwire.features.information_budget.lexical_estimate import prove
from groundwire.gateway.estimators import Asker, Estimators
from groundwire.gateway.judging import LanguageJudges
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge, unjudged
from groundwire.policy import Policy
from groundwire.scoring.budget import TARGETS, measure

log = structlog.get_logger("groundwire.proving")

_REASONS = {
    "timeout": "The time for checking it was over.",
    "overload": "There was no room to check it under the present load.",
    "error": "Checking it failed.",
}


@dataclass(frozen=True, slots=True)
class Prover:
    """The components of single checks; `policy` is that of the embedded verifier, which is always used.

    The language model of `judging`, if any, judges claims of answers; `judge` is its fallback, and the judge of all
    other operations.
    """

    workers: Workers
    policy: Policy
    estimators: Estimators
    judge: Judge = Judge()
    judging: LanguageJudges | None = None

    def open(self, operation: Operation, asker: Asker, within: float) -> Proof:
        """Start one operation that may take `within` seconds. Raises BadRequest and UnknownModel."""
        backend = self.estimators.operations.get(operation, "local")
        if backend == "self" and not asker.model:
            raise BadRequest("you must provide a model parameter: the backend asks that model", param="model")
        policy = replace(self.policy, model=replace(self.policy.model, backend=backend))
        estimator = None if backend == "local" else self.estimators.open(operation, asker).estimator
        parts = replace(self, policy=policy)
        if self.judging is not None and operation == "output_verification":
            parts = replace(parts, judge=self.judging.blocking(self.judge, asker), workers=self.judging.waiting)
        return Proof(parts, estimator, asyncio.get_running_loop().time() + within)


class Proof:
    """The claims of one operation, which ends at `until` (loop time)."""

    def __init__(self, parts: Prover, estimator: Estimator | None, until: float) -> None:
        self._parts = parts
        self._estimator = estimator
        self._until = until

    async def prove(
        self, claim: Claim, sources: Sequence[Source], target_of: TargetOf = TARGETS.__getitem__
    ) -> Judgement:
        """Judge the claim and measure its budget. Raises nothing but cancellation.

        The model's verdict counts if it is decided; otherwise, or when the model fails or takes too long, that of the
        embedded verifier.
        """
        asking = None
        if self._estimator is not None and claim.skip_reason is None:
            asking = asyncio.create_task(self._measured(claim, sources, self._estimator, target_of))
        try:
            worded = await self._worded(claim, sources, target_of("verifier"))
            if asking is None:
                return worded
            return await self._parts.workers.insist(_joined, worded, await asking, sources, self._parts.policy)
        except Exception as error:  # noqa: BLE001 - no fault of a verifier may reach who asks
            log.warning("proof.failed", error=type(error).__name__)
            return unproved(claim, "error")
        finally:
            if asking is not None:
                asking.cancel()

    async def _measured(
        self, claim: Claim, sources: Sequence[Source], estimator: Estimator, target_of: TargetOf
    ) -> Budget:
        try:
            async with asyncio.timeout_at(self._until):
                return await measured(claim, sources, estimator, target_of)
        except TimeoutError:
            return measure(Unavailable("timeout"))
        except Exception as error:  # noqa: BLE001 - what the embedded verifier says stands
            log.warning("proof.model_failed", error=type(error).__name__)
            return measure(Unavailable("error"))

    async def _worded(self, claim: Claim, sources: Sequence[Source], target: float) -> Judgement:
        parts = self._parts
        try:
            async with asyncio.timeout_at(self._until):
                return await parts.workers.run(prove, claim, sources, parts.policy, parts.judge, target)
        except TimeoutError:
            return unproved(claim, "timeout")
        except Overload:
            return unproved(claim, "overload")


def unproved(claim: Claim, cause: Cause) -> Judgement:
    """A claim that was not judged, and why."""
    judgement = unjudged(claim, cause, _REASONS.get(cause, _REASONS["error"]))
    return replace(judgement, budget=measure(Unavailable(cause)))


def _joined(worded: Judgement, budget: Budget, sources: Sequence[Source], policy: Policy) -> Judgement:
    return joined(worded, budget, Context(sources), policy)
