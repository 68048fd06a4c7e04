"""The memory gate: verify facts within a time limit, store them per subject, and load them."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from groundwire.domain import Claim, Judgement, Source
from groundwire.errors import MemoryUnavailable
from groundwire.features.information_budget.estimates import assertion
from groundwire.features.memory import Admission, GatePolicy, admit
from groundwire.gateway.claim_checker import CheckSession, ClaimChecker, unchecked
from groundwire.gateway.models import Caller
from groundwire.scoring.budget import target_of, unasked
from groundwire.storage.facts import Fact, FactStore
from groundwire.telemetry import Telemetry, short_hash

log = structlog.get_logger("groundwire.memory")

LONGEST_S = 1.8  # for all facts of one call; the two seconds that a call may take hold reading and replying too
_STORE_S = 0.1  # of these, for a store that does not answer
_RECALL_S = 0.5  # for reading the store


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
    facts: FactStore
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
        return answered if await self._keep(subject, answered, tenant) else [_unkept(each) for each in answered]

    async def prove(self, offered: Sequence[Offered], caller: Caller, seconds: float) -> list[Answered]:
        """Decide on facts in `seconds` at most, and store nothing. Raises UnknownModel."""
        session = self.checker.open("memory_gate", caller, seconds)
        claims = [_claim(each, f"f{number}") for number, each in enumerate(offered, start=1)]
        proving = [asyncio.create_task(_proved(session, *pair)) for pair in zip(claims, offered, strict=True)]
        judgements = await _in_time(proving, claims, seconds)
        return [self._answered(*pair) for pair in zip(offered, judgements, strict=True)]

    async def revise(
        self, subject: str, ids: Sequence[str | None], answered: Sequence[Answered], tenant: str = ""
    ) -> list[Answered]:
        """Replace stored facts of these ids (None: not stored) by revised ones; rejected facts are deleted.

        A fact that is no longer stored is not restored: somebody may have deleted it.
        """
        stored = {fact.id for fact in await self.facts.of(subject, tenant)}
        revised = [
            replace(each, fact=replace(each.fact, id=id_)) if each.fact and id_ in stored else _unkept(each)
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

    async def _keep(self, subject: str, answered: Sequence[Answered], tenant: str) -> bool:
        """Store the accepted facts and return whether that succeeded; a failing store does not affect the answer."""
        facts = [each.fact for each in answered if each.fact is not None]
        try:
            async with asyncio.timeout(_STORE_S):
                await self.facts.put(subject, facts, tenant)
        except Exception as error:  # noqa: BLE001 - whatever a store may raise
            log.warning("memory.not_kept", facts=len(facts), error=type(error).__name__)
            return False
        return True

    async def about(self, subject: str, tenant: str = "") -> Sequence[Fact]:
        """The facts that a tenant keeps about a subject, oldest first. Raises MemoryUnavailable."""
        try:
            async with asyncio.timeout(_RECALL_S):
                return await self.facts.of(subject, tenant)
        except Exception as error:
            log.warning("memory.not_recalled", error=type(error).__name__)
            message = "The facts that are kept cannot be reached just now. Please try again."
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


def _claim(offered: Offered, id_: str) -> Claim:
    """Return the fact as a claim: offering it asserts it, whatever its form."""
    return replace(assertion(offered.text, id_), skip_reason=None)


async def _proved(session: CheckSession, claim: Claim, offered: Offered) -> Judgement:
    if offered.unknown:
        nothing = unchecked(claim, "error")
        return Judgement(claim, nothing.verdict, 0.0, budget=unasked(has_context=True, unknown=offered.unknown))
    stated = _stated(offered, claim)
    return await session.check(claim, offered.evidence, lambda method: target_of(stated, method))


async def _in_time(
    proving: Sequence[asyncio.Task[Judgement]], claims: Sequence[Claim], seconds: float
) -> list[Judgement]:
    """Return the result of every task; one that has not ended is cancelled but not waited for."""
    if proving:
        await asyncio.wait(proving, timeout=seconds)
    for task in proving:
        task.cancel()
    return [
        task.result() if task.done() and not task.cancelled() else unchecked(claim, "timeout")
        for task, claim in zip(proving, claims, strict=True)
    ]


def _stated(offered: Offered, claim: Claim) -> float:
    return claim.stated_confidence if offered.confidence is None else offered.confidence


def _unkept(answered: Answered) -> Answered:
    return Answered(answered.admission, answered.judgement, answered.stated)


def _log_rejection(offered: Offered, judgement: Judgement, admission: Admission) -> None:
    """Log a rejected fact: the reason, its length and its hash, never its text."""
    log.warning(
        admission.rejected or "",
        chars=len(offered.text),
        sha256=short_hash(offered.text),
        evidence=[{"chars": len(source.text), "sha256": short_hash(source.text)} for source in offered.evidence],
        status=judgement.budget.status if judgement.budget else None,
        share=admission.share,
    )
