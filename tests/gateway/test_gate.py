"""The memory gate ends in time even if a component hangs, logs no text of rejected facts, and recalls stored facts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from groundwire.domain import Claim, Estimate, Probability, Source
from groundwire.errors import MemoryUnavailable
from groundwire.features.information_budget import MARKER
from groundwire.features.memory import GatePolicy
from groundwire.gateway.claims import Answered, ClaimChecker, Memory, Offered
from groundwire.gateway.forward import Caller
from groundwire.gateway.models import Backend, Estimators, estimate_cache
from groundwire.http.exchange import error_reply
from groundwire.offload import Workers
from groundwire.policy import Policy
from groundwire.storage.memory import Fact, MemoryFacts

EVIDENCE = (Source("a", "source", "Costs were $3 million in 2023. Lee leads the team."),)
STATED, INVENTED = "Costs were $3M in 2023.", "The secret recipe holds saffron."


class Believes:
    """An estimator that believes only with evidence."""

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        p = 0.5 if any(MARKER in source.text for source in context) else 0.99
        return Probability(p, p, p, "logprobs")

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        return [await self.estimate_probability(claim, context) for claim in claims]


class Stubborn(Believes):
    """An estimator that answers once released and ignores cancellation."""

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        while not self.released.is_set():
            with suppress(asyncio.CancelledError):
                await self.released.wait()
        return await super().estimate_probability(claim, context)


class Breaks(Believes):
    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        raise RuntimeError("of the backend")


class Hangs(MemoryFacts):
    """A store that never answers."""

    async def put(self, subject: str, facts: Sequence[Fact]) -> None:
        await asyncio.sleep(600)

    async def of(self, subject: str) -> Sequence[Fact]:
        await asyncio.sleep(600)
        return ()


class Fails(MemoryFacts):
    """A store that is down."""

    async def put(self, subject: str, facts: Sequence[Fact]) -> None:
        raise OSError("disk full")

    async def of(self, subject: str) -> Sequence[Fact]:
        raise OSError("no such table")


def memory(estimator: Believes | None = None, workers: Workers | None = None, **more: Any) -> Memory:
    """A gate that uses this estimator, or none."""
    backends = {"model": lambda asker, limits, meter: Backend(estimator or Believes(), "test")}
    operations: Any = {"memory_gate": "model" if estimator else "local"}
    estimators = Estimators(backends, operations, estimate_cache(0, 60), 8, 60.0)
    prover = ClaimChecker(workers or Workers(1, 100), Policy(), estimators)
    return Memory(prover, **{"facts": MemoryFacts(), "policy": GatePolicy(), "timeout": 60.0, **more})


def admit(gate: Memory, *texts: str, subject: str | None = "acme", **more: Any) -> list[Answered]:
    """Return how the gate decides on these facts."""

    async def work() -> list[Answered]:
        offered = [Offered(text, **{"evidence": EVIDENCE, "confidence": 0.8, **more}) for text in texts]
        return await gate.admit(offered, subject, Caller("m"))

    return asyncio.run(work())


def recalled(gate: Memory, subject: str = "acme") -> list[str]:
    return [source.text for source in asyncio.run(gate.sources(subject))]


def test_accepted_facts_come_back_as_sources_of_their_subject() -> None:
    gate = memory(Believes())
    (answered,) = admit(gate, STATED)
    assert (answered.admission.confidence, answered.admission.grounding) == (0.8, "grounded")
    assert recalled(gate) == [STATED]
    assert recalled(gate, "other") == []


def test_a_new_decision_replaces_stored_facts_and_restores_none() -> None:
    gate = memory(Breaks())
    texts = [STATED, "Lee leads the team.", INVENTED]
    before = admit(gate, *texts)
    ids = [each.fact.id if each.fact else None for each in before]
    anew = replace(gate, checker=memory().checker)
    offered = [Offered(text, EVIDENCE, 0.8) for text in texts]

    async def work() -> list[Answered]:
        await gate.facts.drop("acme", [ids[1] or ""])  # forgotten meanwhile
        return await anew.revise("acme", ids, await anew.prove(offered, Caller("m"), 30.0))

    revised = asyncio.run(work())
    assert [each.admission.rejected for each in revised] == [None, None, "fact_not_grounded"]
    assert [each.fact.id if each.fact else None for each in revised] == [ids[0], None, None]
    assert recalled(gate) == [STATED]
    assert len(asyncio.run(gate.about("acme"))) == 1


def test_a_backend_that_cannot_be_stopped_does_not_stop_the_gate() -> None:
    stubborn = Stubborn()
    gate = memory(stubborn)

    async def work() -> list[Answered]:
        found = await gate.admit(
            [Offered(STATED, EVIDENCE, 0.8), Offered(INVENTED, EVIDENCE, 0.8)], "acme", Caller("m")
        )
        stubborn.released.set()
        return found

    found = asyncio.run(work())
    assert [each.admission.grounding for each in found] == ["unverified", "unverified"]
    assert [each.admission.confidence for each in found] == [0.4, 0.4]
    assert recalled(gate) == []


def test_workers_that_are_busy_do_not_stop_the_gate() -> None:
    async def work() -> list[Answered]:
        workers, released = Workers(1, 100), threading.Event()
        busy = asyncio.create_task(workers.run(released.wait, 60))
        await asyncio.sleep(0)
        found = await memory(workers=workers).admit([Offered(STATED, EVIDENCE, 0.8)], None, Caller())
        released.set()
        assert await busy, "the worker was free meanwhile"
        return found

    (answered,) = asyncio.run(work())
    assert answered.admission.grounding == "unverified"


def test_a_full_queue_of_checks_is_reported_as_overload() -> None:
    (answered,) = admit(memory(workers=Workers(1, 0)), STATED)
    assert answered.judgement.budget
    assert answered.judgement.budget.missing
    assert answered.judgement.budget.missing.cause == "overload"


def test_a_backend_that_breaks_costs_confidence_and_nothing_else() -> None:
    (answered,) = admit(memory(Breaks()), STATED)
    assert (answered.admission.grounding, answered.admission.confidence) == ("unverified", 0.4)


@pytest.mark.parametrize("store", [Hangs(), Fails()], ids=["hangs", "is down"])
def test_a_store_that_does_not_keep_costs_the_keeping_and_nothing_else(store: MemoryFacts) -> None:
    gate = memory(Believes(), facts=store)
    (answered,) = admit(gate, STATED)
    assert answered.admission.confidence == 0.8
    assert answered.fact is None
    assert recalled(gate) == []


@pytest.mark.parametrize("store", [Hangs(), Fails()], ids=["hangs", "is down"])
def test_listing_facts_of_an_unreadable_store_is_an_error(store: MemoryFacts) -> None:
    with pytest.raises(MemoryUnavailable, match="cannot be read at the moment"):
        asyncio.run(memory(facts=store).about("acme"))


def test_a_store_that_cannot_be_read_is_a_503_of_a_code_of_its_own() -> None:
    reply = error_reply(MemoryUnavailable("Please try again."))
    assert (reply.status, b"memory_unavailable" in reply.body) == (503, True)


def test_a_rejected_fact_is_logged_without_its_words_and_never_stored() -> None:
    gate = memory()
    with capture_logs() as lines:
        (answered,) = admit(gate, INVENTED)
    assert answered.admission.rejected == "fact_not_grounded"
    (line,) = [line for line in lines if line["event"] == "fact_not_grounded"]
    assert (line["chars"], len(line["sha256"]), line["status"]) == (len(INVENTED), 12, "not_entailed")
    assert "saffron" not in str(lines)
    assert "million" not in str(lines)
    assert asyncio.run(gate.facts.of("acme")) == ()


def test_a_fact_is_asserted_whatever_its_form() -> None:
    (question, label) = admit(memory(), "Is the moon made of cheese?", "Team lead: Lee")
    assert question.admission.rejected == "fact_not_grounded"
    assert label.judgement.verdict.label != "not_checked"


def test_without_a_stated_confidence_the_wording_determines_it() -> None:
    (plain, hedged) = admit(memory(), STATED, "Costs were probably $3M in 2023.", confidence=None)
    assert hedged.stated < plain.stated <= 1.0


def test_evidence_that_nobody_gave_grounds_nothing() -> None:
    (answered,) = admit(memory(Believes()), STATED, unknown=("zz",))
    assert answered.admission.rejected == "fact_not_grounded"
