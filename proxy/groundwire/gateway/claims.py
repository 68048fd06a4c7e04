"""Check single claims and traces of reasoning against explicit evidence, and admit facts to memory."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import structlog

from groundwire.backends.budgets import Estimator, TargetOf, measured
from groundwire.backends.estimators import ChatExecutor
from groundwire.dialects.checks import TraceCheck, sources_of
from groundwire.domain import Budget, Claim, Judgement, Operation, Source, Unavailable
from groundwire.errors import BadRequest, MemoryUnavailable, Overload
from groundwire.evidence.index import Context
from groundwire.features.information_budget import assertion, joined, prove
from groundwire.features.memory import Admission, GatePolicy, admit
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
from groundwire.gateway.forward import Caller
from groundwire.gateway.models import Estimators, LanguageJudges
from groundwire.gateway.reports import described
from groundwire.judge import Judge, unjudged
from groundwire.offload import Workers
from groundwire.pipeline import OVERLOAD
from groundwire.policy import Policy
from groundwire.scoring.budget import TARGETS, measure, target_of, unasked
from groundwire.storage.memory import Fact, MemoryFacts
from groundwire.telemetry import Telemetry

log = structlog.get_logger("groundwire.proving")
trace_log = structlog.get_logger("groundwire.trace")
memory_log = structlog.get_logger("groundwire.memory")

LONGEST_S = 1.8  # for all facts of one call; the two seconds that a call may take hold reading and replying too
_STORE_S = 0.1  # of these, for a store that does not answer
_RECALL_S = 0.5  # for reading the store
_REASONS = {
    "timeout": "The time limit for checking it was reached.",
    "overload": OVERLOAD,
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
        estimator = None if backend == "local" else self.estimators.open(operation, caller)
        parts = replace(self, policy=policy)
        if self.judging is not None and operation == "output_verification":
            parts = replace(parts, judge=self.judging.blocking(self.judge, caller), workers=self.judging.waiting)
        return CheckSession(parts, estimator, asyncio.get_running_loop().time() + timeout)


@dataclass(frozen=True, slots=True)
class CheckSession:
    """The claims of one operation, which ends at `until` (loop time)."""

    parts: ClaimChecker
    estimator: Estimator | None
    until: float

    async def check(
        self, claim: Claim, sources: Sequence[Source], target_of: TargetOf = TARGETS.__getitem__
    ) -> Judgement:
        """Judge the claim and measure its budget. Raises nothing but cancellation.

        The model's verdict counts if it is decided; otherwise, or when the model fails or takes too long, that of the
        embedded verifier.
        """
        querying = None
        if self.estimator is not None and claim.skip_reason is None:
            querying = asyncio.create_task(self._measured(claim, sources, self.estimator, target_of))
        try:
            embedded = await self._embedded(claim, sources, target_of("verifier"))
            if querying is None:
                return embedded
            budget, policy = await querying, self.parts.policy
            return await self.parts.workers.insist(lambda: joined(embedded, budget, Context(sources), policy))
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
            async with asyncio.timeout_at(self.until):
                return await measured(claim, sources, estimator, target_of)
        except TimeoutError:
            return measure(Unavailable("timeout"))
        except Exception as error:  # noqa: BLE001 - what the embedded verifier says stands
            log.warning("proof.model_failed", error=type(error).__name__)
            return measure(Unavailable("error"))

    async def _embedded(self, claim: Claim, sources: Sequence[Source], target: float) -> Judgement:
        parts = self.parts
        try:
            async with asyncio.timeout_at(self.until):
                return await parts.workers.run(prove, claim, sources, parts.policy, parts.judge, target)
        except TimeoutError:
            return unchecked(claim, "timeout")
        except Overload:
            return unchecked(claim, "overload")


def unchecked(claim: Claim, cause: Literal["timeout", "overload", "error"]) -> Judgement:
    """A claim that was not judged, and why."""
    judgement = unjudged(claim, cause, _REASONS[cause])
    return replace(judgement, budget=measure(Unavailable(cause)))


@dataclass(frozen=True, slots=True)
class Auditor:
    """Audits traces. `timeout` is in seconds, for a whole trace; without an executor only words are compared."""

    checker: ClaimChecker
    timeout: float
    checks_post_hoc: bool = True
    open_executor: Callable[[Caller, float], ChatExecutor] | None = None

    async def audit(self, trace: TraceCheck, caller: Caller) -> Audit:
        """Audit every step, and check whether the answer follows. Raises UnknownModel."""
        session = self.checker.open("trace_auditing", caller, self.timeout)
        steps = await asyncio.to_thread(steps_of, trace.steps)
        executor = self.open_executor(caller, self.timeout) if self.open_executor else None
        context, found = sources_of(trace.sources), list[AuditedStep]()

        async def audit_steps() -> None:
            for step in steps:
                found.append(audited(await session.check(step, premises(context, found))))

        _, post_hoc = await asyncio.gather(audit_steps(), self._post_hoc(trace, steps, executor))
        return Audit(tuple(found), post_hoc)

    async def _post_hoc(
        self, trace: TraceCheck, steps: Sequence[Claim], executor: ChatExecutor | None
    ) -> PostHoc | None:
        """Compare the executor's derivation with the answer; without one, or if it fails, compare words."""
        if trace.answer is None or not self.checks_post_hoc:
            return None
        run, policy, judge = self.checker.workers.run, self.checker.policy, self.checker.judge
        try:
            async with asyncio.timeout(self.timeout):
                derived = await executor.complete(*ask_derivation(trace.question, steps)) if executor else None
                if isinstance(derived, str):
                    return await run(compare_derived, trace.answer, derived, policy, judge, trace.question)
                return await run(derive_by_words, trace.answer, trace.question, steps, policy, judge)
        except TimeoutError:
            return PostHoc("unverifiable", "The time limit for deriving the answer was reached.")
        except Overload:
            return PostHoc("unverifiable", "The answer was not derived because the proxy is overloaded.")
        except Exception as error:  # noqa: BLE001 - no fault of an executor may reach who asks
            trace_log.warning("derivation.failed", error=type(error).__name__)
            return PostHoc("unverifiable", "Deriving the answer failed.")


@dataclass(frozen=True, slots=True)
class Offered:
    """A fact to store, with its evidence and its stated confidence.

    Without a stated confidence (0–1) its wording determines it. `unknown` are ids of missing evidence.
    """

    text: str
    evidence: tuple[Source, ...] = ()
    confidence: float | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """The decision of the gate on one fact; `fact` is the stored version, if any."""

    admission: Admission
    judgement: Judgement
    stated: float
    fact: Fact | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """The gate and its stored facts. `timeout` (seconds) is for verifying all facts of one call, 1.8 at the most."""

    checker: ClaimChecker
    facts: MemoryFacts
    policy: GatePolicy
    timeout: float = LONGEST_S
    clock: Callable[[], float] = time.time
    telemetry: Telemetry = Telemetry()

    async def admit(
        self, offered: Sequence[Offered], subject: str | None, caller: Caller, tenant: str = ""
    ) -> list[Answered]:
        """Decide on facts, and store accepted ones for a tenant when there is a subject. Raises UnknownModel.

        It always ends in time: a fact that has not been verified by then is accepted with less confidence, and marked.
        """
        self.telemetry.about(None, subject)
        answered = await self.prove(offered, caller, min(self.timeout, LONGEST_S) - _STORE_S)
        rejected = sum(each.admission.rejected is not None for each in answered)
        self.telemetry.admitted(len(answered) - rejected, rejected)
        if subject is None:
            return answered
        facts = [each.fact for each in answered if each.fact is not None]
        try:
            async with asyncio.timeout(_STORE_S):
                await self.facts.put(subject, facts, tenant)
        except Exception as error:  # noqa: BLE001 - whatever a store may raise; it costs the keeping only
            memory_log.warning("memory.not_kept", facts=len(facts), error=type(error).__name__)
            return [replace(each, fact=None) for each in answered]
        return answered

    async def prove(self, offered: Sequence[Offered], caller: Caller, seconds: float) -> list[Answered]:
        """Decide on facts in `seconds` at most, and store nothing. Raises UnknownModel."""
        session = self.checker.open("memory_gate", caller, seconds)
        # offering a fact asserts it, whatever its form
        claims = [replace(assertion(each.text, f"f{at}"), skip_reason=None) for at, each in enumerate(offered, start=1)]
        proving = [asyncio.create_task(_proved(session, *pair)) for pair in zip(claims, offered, strict=True)]
        if proving:
            await asyncio.wait(proving, timeout=seconds)
        for task in proving:
            task.cancel()  # but do not wait for it
        judgements = [
            task.result() if task.done() and not task.cancelled() else unchecked(claim, "timeout")
            for task, claim in zip(proving, claims, strict=True)
        ]
        return [self._answered(*pair) for pair in zip(offered, judgements, strict=True)]

    async def revise(
        self, subject: str, ids: Sequence[str | None], answered: Sequence[Answered], tenant: str = ""
    ) -> list[Answered]:
        """Replace stored facts of these ids (None: not stored) by revised ones; rejected facts are deleted.

        A fact that is no longer stored is not restored: somebody may have deleted it.
        """
        stored = {fact.id for fact in await self.facts.of(subject, tenant)}
        revised = [
            replace(each, fact=replace(each.fact, id=id_)) if each.fact and id_ in stored else replace(each, fact=None)
            for id_, each in zip(ids, answered, strict=True)
        ]
        await self.facts.drop(subject, stored.intersection(ids), tenant)
        await self.facts.put(subject, [each.fact for each in revised if each.fact is not None], tenant)
        return revised

    def _answered(self, offered: Offered, judgement: Judgement) -> Answered:
        stated = _stated(offered, judgement.claim)
        assert judgement.budget is not None  # noqa: S101 - a proof measures every claim
        admission = admit(stated, judgement.budget, self.policy)
        if admission.confidence is None:
            _log_rejection(offered, judgement, admission)
            return Answered(admission, judgement, stated)
        fact = Fact(
            "fact-" + secrets.token_hex(6),
            offered.text,
            admission.confidence,
            self.clock(),
            admission.grounding == "grounded",
        )
        return Answered(admission, judgement, stated, fact)

    async def about(self, subject: str, tenant: str = "") -> Sequence[Fact]:
        """The facts that a tenant keeps about a subject, oldest first. Raises MemoryUnavailable."""
        try:
            async with asyncio.timeout(_RECALL_S):
                return await self.facts.of(subject, tenant)
        except Exception as error:
            memory_log.warning("memory.not_recalled", error=type(error).__name__)
            message = "Stored facts cannot be read at the moment. Please try again."
            raise MemoryUnavailable(message, operator=type(error).__name__) from error

    async def sources(self, subject: str, tenant: str = "") -> tuple[Source, ...]:
        """A tenant's grounded facts about a subject as sources; none when they cannot be had.

        Raises nothing but cancellation.
        """
        try:
            stored = await self.about(subject, tenant)
        except MemoryUnavailable:
            return ()
        return tuple(Source(fact.id, "source", fact.text, labels=(fact.id,)) for fact in stored if fact.is_verified)


async def _proved(session: CheckSession, claim: Claim, offered: Offered) -> Judgement:
    if offered.unknown:
        nothing = unchecked(claim, "error")
        return Judgement(claim, nothing.verdict, 0.0, budget=unasked(has_context=True, unknown=offered.unknown))
    stated = _stated(offered, claim)
    return await session.check(claim, offered.evidence, lambda method: target_of(stated, method))


def _stated(offered: Offered, claim: Claim) -> float:
    return claim.stated_confidence if offered.confidence is None else offered.confidence


def _log_rejection(offered: Offered, judgement: Judgement, admission: Admission) -> None:
    """Log a rejected fact: the reason, its length and its hash, never its text."""
    memory_log.warning(
        admission.rejected or "",
        **described(offered.text),
        evidence=[described(source.text) for source in offered.evidence],
        status=judgement.budget.status if judgement.budget else None,
        share=admission.share,
    )
