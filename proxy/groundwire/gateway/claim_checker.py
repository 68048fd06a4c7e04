"""Check single claims and traces of reasoning against explicit evidence, by the judge and by a back end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from groundwire.backends.budgets import Estimator, TargetOf, measured
from groundwire.domain import Budget, Cause, Claim, Judgement, Operation, Source, Unavailable
from groundwire.errors import BadRequest, Overload
from groundwire.evidence.index import Context
from groundwire.features.information_budget.estimates import joined, prove
from groundwire.features.trace import (
    Audit,
    AuditedStep,
    PostHoc,
    ask_derivation,
    audited,
    compare_derived,
    derive_by_words,
    premises,
    steps_of,
)
from groundwire.gateway.models import Caller, Estimators, LanguageJudges
from groundwire.gateway.workers import Workers
from groundwire.judge import Judge, unjudged
from groundwire.policy import Policy
from groundwire.scoring.budget import TARGETS, measure

log = structlog.get_logger("groundwire.proving")
trace_log = structlog.get_logger("groundwire.trace")

_REASONS = {
    "timeout": "The time for checking it was over.",
    "overload": "There was no room to check it under the present load.",
    "error": "Checking it failed.",
}


@dataclass(frozen=True, slots=True)
class ClaimChecker:
    """The components of single checks; `policy` is that of the embedded verifier, which is always used.

    The language model of `judging`, if any, judges claims of answers; `judge` is its fallback, and the judge of all
    other operations.
    """

    workers: Workers
    policy: Policy
    estimators: Estimators
    judge: Judge = Judge()
    judging: LanguageJudges | None = None

    def open(self, operation: Operation, caller: Caller, timeout: float) -> CheckSession:
        """Start one operation that may take `timeout` seconds. Raises BadRequest and UnknownModel."""
        backend = self.estimators.operations.get(operation, "local")
        if backend == "self" and not caller.model:
            raise BadRequest("you must provide a model parameter: the backend asks that model", param="model")
        policy = replace(self.policy, model=replace(self.policy.model, backend=backend))
        estimator = None if backend == "local" else self.estimators.open(operation, caller).estimator
        parts = replace(self, policy=policy)
        if self.judging is not None and operation == "output_verification":
            parts = replace(parts, judge=self.judging.blocking(self.judge, caller), workers=self.judging.waiting)
        return CheckSession(parts, estimator, asyncio.get_running_loop().time() + timeout)


class CheckSession:
    """The claims of one operation, which ends at `until` (loop time)."""

    def __init__(self, parts: ClaimChecker, estimator: Estimator | None, until: float) -> None:
        self._parts = parts
        self._estimator = estimator
        self._until = until

    async def check(
        self, claim: Claim, sources: Sequence[Source], target_of: TargetOf = TARGETS.__getitem__
    ) -> Judgement:
        """Judge the claim and measure its budget. Raises nothing but cancellation.

        The model's verdict counts if it is decided; otherwise, or when the model fails or takes too long, that of the
        embedded verifier.
        """
        querying = None
        if self._estimator is not None and claim.skip_reason is None:
            querying = asyncio.create_task(self._measured(claim, sources, self._estimator, target_of))
        try:
            embedded = await self._embedded(claim, sources, target_of("verifier"))
            if querying is None:
                return embedded
            return await self._parts.workers.insist(_joined, embedded, await querying, sources, self._parts.policy)
        except Exception as error:  # noqa: BLE001 - no fault of a verifier may reach who asks
            log.warning("proof.failed", error=type(error).__name__)
            return unchecked(claim, "error")
        finally:
            if querying is not None:
                querying.cancel()

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

    async def _embedded(self, claim: Claim, sources: Sequence[Source], target: float) -> Judgement:
        parts = self._parts
        try:
            async with asyncio.timeout_at(self._until):
                return await parts.workers.run(prove, claim, sources, parts.policy, parts.judge, target)
        except TimeoutError:
            return unchecked(claim, "timeout")
        except Overload:
            return unchecked(claim, "overload")


def unchecked(claim: Claim, cause: Cause) -> Judgement:
    """A claim that was not judged, and why."""
    judgement = unjudged(claim, cause, _REASONS.get(cause, _REASONS["error"]))
    return replace(judgement, budget=measure(Unavailable(cause)))


def _joined(embedded: Judgement, budget: Budget, sources: Sequence[Source], policy: Policy) -> Judgement:
    return joined(embedded, budget, Context(sources), policy)


class Executor(Protocol):
    """A model that finishes chains of reasoning."""

    async def complete(self, system: str, user: str) -> str | Unavailable:
        """Return the reply to a prompt; raises nothing but cancellation."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace of reasoning as it was given; `answer` is None when there is none to derive."""

    steps: tuple[str, ...]
    context: tuple[Source, ...] = ()
    answer: str | None = None
    question: str = ""


@dataclass(frozen=True, slots=True)
class Auditor:
    """Audits traces. `timeout` is in seconds, for a whole trace; without an executor only words are compared."""

    checker: ClaimChecker
    timeout: float
    checks_post_hoc: bool = True
    open_executor: Callable[[Caller, float], Executor] | None = None

    async def audit(self, trace: Trace, caller: Caller) -> Audit:
        """Audit every step, and check whether the answer follows. Raises UnknownModel."""
        session = self.checker.open("trace_auditing", caller, self.timeout)
        steps = await asyncio.to_thread(steps_of, trace.steps)
        executor = self.open_executor(caller, self.timeout) if self.open_executor else None
        found, post_hoc = await asyncio.gather(
            _audited(session, steps, trace.context), self._post_hoc(trace, steps, executor)
        )
        return Audit(found, post_hoc)

    async def _post_hoc(self, trace: Trace, steps: Sequence[Claim], executor: Executor | None) -> PostHoc | None:
        if trace.answer is None or not self.checks_post_hoc:
            return None
        try:
            async with asyncio.timeout(self.timeout):
                if executor is None:
                    return await self._by_words(trace.answer, trace.question, steps)
                return await self._by_executor(trace.answer, trace.question, steps, executor)
        except TimeoutError:
            return PostHoc("unverifiable", "The time for deriving the answer was over.")
        except Overload:
            return PostHoc("unverifiable", "There was no room to derive it under the present load.")
        except Exception as error:  # noqa: BLE001 - no fault of an executor may reach who asks
            trace_log.warning("derivation.failed", error=type(error).__name__)
            return PostHoc("unverifiable", "Deriving the answer failed.")

    async def _by_words(self, answer: str, question: str, steps: Sequence[Claim]) -> PostHoc:
        checker = self.checker
        return await checker.workers.run(derive_by_words, answer, question, steps, checker.policy, checker.judge)

    async def _by_executor(self, answer: str, question: str, steps: Sequence[Claim], executor: Executor) -> PostHoc:
        """Compare the executor's derivation with the answer; if it fails, compare words."""
        derived = await executor.complete(*ask_derivation(question, steps))
        if isinstance(derived, Unavailable):
            return await self._by_words(answer, question, steps)
        return await self.checker.workers.run(
            compare_derived, answer, derived, self.checker.policy, self.checker.judge, question
        )


async def _audited(session: CheckSession, steps: Sequence[Claim], context: Sequence[Source]) -> tuple[AuditedStep, ...]:
    found: list[AuditedStep] = []
    for step in steps:
        found.append(audited(await session.check(step, premises(context, found))))
    return tuple(found)
