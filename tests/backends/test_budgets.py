"""Budgets of claims, measured against a server of known beliefs over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from groundwire.backends.budgets import Cited, budgets
from groundwire.domain import Budget, Citation, Claim, Estimate, Method, Probability, Source
from groundwire.features.information_budget import MARKER, label_of
from groundwire.scoring.budget import signed_bits
from tests.backends.asked import CONTEXT, DENIED_CLAIM, SILENT_CLAIM, STATED_CLAIM, chatting
from tests.servers.believer import DENIED, SCRUBBED, STATED, UNSTATED, Believer, Manner, understand

WHOLE = Citation("s1", 0, len(CONTEXT[0].text), CONTEXT[0].text, 1.0, "exact")
WEATHER = Citation("s2", 0, len(CONTEXT[1].text), CONTEXT[1].text, 1.0, "exact")


def measured(
    believer: Believer, *asked: Cited, sources: Sequence[Source] = CONTEXT, threshold_bits: float = 0.0, **options: Any
) -> list[Budget]:
    found, _ = chatting(believer, lambda estimator: budgets(asked, sources, estimator, threshold_bits), **options)
    return found


def prompts(believer: Believer) -> list[tuple[int, int, bool]]:
    """Return for every question its numbers of claims and sources, and whether evidence was removed."""
    read = [understand([prompt]) for prompt in believer.prompts]
    return sorted((len(each.claims), len(each.context), "REMOVED" in "".join(each.context)) for each in read if each)


@pytest.mark.parametrize(
    ("cited", "known", "p1", "p0", "status"),
    [
        pytest.param(Cited(STATED_CLAIM), {}, STATED, SCRUBBED, "supported", id="stated, citing nothing"),
        pytest.param(Cited(STATED_CLAIM, (WHOLE,)), {}, STATED, SCRUBBED, "supported", id="stated"),
        pytest.param(Cited(DENIED_CLAIM, (WHOLE,)), {}, DENIED, SCRUBBED, "contradicted", id="denied"),
        pytest.param(Cited(STATED_CLAIM, (WHOLE,)), {STATED_CLAIM.text: 0.99}, STATED, 0.99, "prior_leak", id="known"),
        pytest.param(Cited(STATED_CLAIM, (WEATHER,)), {}, STATED, STATED, "prior_leak", id="stated elsewhere"),
    ],
)
def test_a_budget_follows_from_belief_with_the_evidence_and_without(
    believer: Believer, cited: Cited, known: Mapping[str, float], p1: float, p0: float, status: str
) -> None:
    believer.manner = Manner(known=known)
    (budget,) = measured(believer, cited)
    assert budget.status == status
    assert budget.p1
    assert budget.p0
    assert (budget.p1.value, budget.p0.value) == (pytest.approx(p1, abs=1e-3), pytest.approx(p0, abs=1e-3))
    assert budget.required_bits == pytest.approx(signed_bits(0.95, p0), abs=0.02)
    assert budget.observed_bits == pytest.approx(signed_bits(p1, p0), abs=0.02)


def test_a_claim_missing_from_the_context_needs_one_question(believer: Believer) -> None:
    (budget,) = measured(believer, Cited(SILENT_CLAIM, (WHOLE,)))
    assert (budget.status, budget.p0, believer.calls) == ("not_entailed", None, 1)
    assert budget.p1
    assert budget.p1.value == pytest.approx(UNSTATED, abs=1e-3)


def test_a_threshold_in_bits_asks_for_belief_without_the_evidence(believer: Believer) -> None:
    (budget,) = measured(believer, Cited(SILENT_CLAIM, (WHOLE,)), threshold_bits=0.5)
    assert budget.p0
    assert budget.p0.value == pytest.approx(SCRUBBED, abs=1e-3)
    assert budget.budget_gap is not None
    assert budget.budget_gap > 0.5


def test_unknown_citations_and_an_empty_context_cost_nothing(believer: Believer) -> None:
    found = measured(believer, Cited(STATED_CLAIM, (), ("7",)))
    found += measured(believer, Cited(STATED_CLAIM), sources=())
    assert [budget.status for budget in found] == ["unknown_citation", "no_context"]
    assert believer.calls == 0


def test_claims_with_the_same_citations_share_one_question(believer: Believer) -> None:
    apart = [Cited(STATED_CLAIM, (WHOLE,)), Cited(DENIED_CLAIM, (WHOLE,)), Cited(SILENT_CLAIM), Cited(STATED_CLAIM)]
    found = measured(believer, *apart)
    assert [budget.status for budget in found] == ["supported", "contradicted", "not_entailed", "supported"]
    asked = prompts(believer)
    assert (4, 2, False) in asked
    assert (2, 2, True) in asked
    assert len([each for each in asked if each[0] > 1]) == 2


def test_an_irrelevant_citation_is_reported_as_decorative(believer: Believer) -> None:
    (budget,) = measured(believer, Cited(STATED_CLAIM, (WHOLE, WEATHER)))
    assert (budget.status, budget.decorative) == ("decorative_citation", (1,))
    assert believer.calls == 5  # p1, p0, without each, and the weather alone


def test_two_equivalent_sources_are_both_dispensable_but_not_decorative(
    believer: Believer,
) -> None:
    twice = (CONTEXT[0], Source("s2", "document", "An auditor agrees. The revenue of 2023 was $4.2 million."))
    second = Citation("s2", 0, len(twice[1].text), twice[1].text, 1.0, "exact")
    (budget,) = measured(believer, Cited(STATED_CLAIM, (WHOLE, second)), sources=twice)
    assert (budget.status, budget.decorative) == ("supported", ())


def test_samples_have_a_target_of_their_own(believer: Believer) -> None:
    believer.manner = Manner(logprobs=False, known={STATED_CLAIM.text: 0.0})
    (budget,) = measured(believer, Cited(SILENT_CLAIM), has_logprobs=False)
    assert (budget.target, budget.status) == (0.7, "ambiguous")


@dataclass(frozen=True)
class TwoBeliefs:
    """An estimator that believes every claim with `p1`, and with `p0` where the evidence was removed."""

    p1: float
    p0: float
    method: Method = "logprobs"

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        value = self.p0 if any(MARKER in source.text for source in context) else self.p1
        return Probability(value, value, value, self.method)

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        return [await self.estimate_probability(each, context) for each in claims]


def believed(p1: float, p0: float, stated: float, method: Method = "logprobs") -> Budget:
    asked = Cited(replace(STATED_CLAIM, stated_confidence=stated))
    (budget,) = asyncio.run(budgets([asked], CONTEXT, TwoBeliefs(p1, p0, method)))
    return budget


@pytest.mark.parametrize(
    ("stated", "method", "target", "status"),
    [
        pytest.param(1.0, "logprobs", 0.95, "not_entailed", id="certain"),
        pytest.param(0.9, "logprobs", 0.95, "not_entailed", id="plain"),
        pytest.param(0.8, "logprobs", 0.8, "supported", id="80 %"),
        pytest.param(0.4, "logprobs", 0.55, "supported", id="perhaps"),
        pytest.param(0.8, "service", 0.8, "supported", id="a service"),
        pytest.param(0.8, "samples", 0.7, "supported", id="samples, 80 %"),
        pytest.param(0.6, "samples", 0.6, "supported", id="samples, may"),
        pytest.param(0.7, "verifier", 0.55, "supported", id="the embedded verifier"),
    ],
)
def test_the_evidence_of_a_claim_has_to_reach_its_stated_confidence(
    stated: float, method: Method, target: float, status: str
) -> None:
    budget = believed(0.85, 0.5, stated, method)
    assert (budget.target, budget.status) == (target, status)
    assert budget.budget_gap is None or (budget.budget_gap > 0) is (status == "not_entailed")


def test_the_stated_confidence_decides_whether_p0_is_estimated() -> None:
    assert believed(0.85, 0.5, 0.9).p0 is None
    assert believed(0.85, 0.5, 0.8).p0


def test_a_claim_is_known_without_the_evidence_if_that_reaches_its_stated_confidence() -> None:
    assert believed(0.99, 0.85, 0.8).status == "prior_leak"
    assert believed(0.99, 0.85, 0.9).status == "supported"


def test_a_citation_is_decorative_at_the_stated_confidence(believer: Believer) -> None:
    hedged = replace(STATED_CLAIM, stated_confidence=0.7)
    (budget,) = measured(believer, Cited(hedged, (WHOLE, WEATHER)))
    assert (budget.target, budget.status, budget.decorative) == (0.7, "decorative_citation", (1,))


@pytest.mark.parametrize(
    ("p1", "p0", "stated", "status", "label"),
    [
        pytest.param(0.35, 0.7, 0.6, "not_entailed", "unsupported", id="doubted"),
        pytest.param(0.03, 0.7, 0.6, "contradicted", "unsupported", id="disbelieved, perhaps for lack of evidence"),
        pytest.param(0.03, 0.97, 0.6, "contradicted", "contradicted", id="firmly believed without the evidence"),
    ],
)
def test_a_hedged_claim_is_not_contradicted_more_easily(
    p1: float, p0: float, stated: float, status: str, label: str
) -> None:
    hedged, plain = believed(p1, p0, stated), believed(p1, p0, 0.9)
    assert (hedged.status, label_of(hedged)) == (status, label) == (plain.status, label_of(plain))


@pytest.mark.parametrize(
    ("manner", "cause"),
    [
        (Manner(busy=99), "rate_limited"),
        (Manner(fails=99), "unreachable"),
        (Manner(hangs=True), "timeout"),
        (Manner(refuses=True), "no_verdict"),
    ],
)
def test_an_unavailable_budget_gives_the_cause(believer: Believer, manner: Manner, cause: str) -> None:
    believer.manner = manner
    found = measured(believer, Cited(STATED_CLAIM), Cited(DENIED_CLAIM), timeout=0.5)
    assert [(budget.status, budget.missing and budget.missing.cause) for budget in found] == [
        ("unavailable", cause)
    ] * 2
