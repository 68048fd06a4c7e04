"""verify_claim, verify_claims and audit_trace with their async twins: typed results, in scripts and in a REPL."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from groundwire import (
    ClaimResult,
    audit_trace,
    audit_trace_async,
    verify_claim,
    verify_claim_async,
    verify_claims,
    verify_claims_async,
)
from groundwire.domain import Claim, Estimate, Probability, Source, Unavailable
from groundwire.features.information_budget import MARKER

EVIDENCE = "Revenue came to $5 million in 2023. Dr. Lee leads the team in Oslo."


class Believes:
    """An estimator that returns `p1` for every claim with evidence, and `p0` without."""

    def __init__(self, p1: Estimate, p0: Estimate) -> None:
        self._p1, self._p0 = p1, p0

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        return self._p0 if any(MARKER in source.text for source in context) else self._p1

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        return [await self.estimate_probability(claim, context) for claim in claims]


def known(value: float) -> Probability:
    return Probability(value, value, value, "logprobs")


@pytest.mark.parametrize(
    ("claim", "label", "status"),
    [
        ("Revenue was $5M in 2023.", "supported", "supported"),
        ("Revenue was $6M in 2023.", "contradicted", "contradicted"),
        ("The moon is made of cheese.", "unsupported", "not_entailed"),
        ("Is that much?", "not_checked", "unavailable"),
    ],
)
def test_a_claim_has_its_label_and_its_budget(claim: str, label: str, status: str) -> None:
    found = verify_claim(claim, EVIDENCE)
    assert (found.claim, found.label, found.status) == (claim, label, status)
    if label == "not_checked":
        assert (found.p1, found.p0, found.budget_gap) == (None, None, None)
    else:
        gap = found.required_bits - found.observed_bits  # type: ignore[operator]
        assert found.budget_gap == pytest.approx(gap)
        assert (gap <= 0) is (label == "supported")
        assert found.reason


def test_a_claim_without_evidence_is_not_clean() -> None:
    assert verify_claim("Revenue was $5M.", []).status == "no_context"


def test_an_estimator_decides_where_it_is_sure() -> None:
    sure = verify_claim("The moon is made of cheese.", EVIDENCE, estimator=Believes(known(0.99), known(0.5)))
    assert (sure.label, sure.status, sure.p1, sure.p0) == ("supported", "supported", 0.99, 0.5)
    against = verify_claim("Revenue was $5M in 2023.", EVIDENCE, estimator=Believes(known(0.01), known(0.97)))
    assert (against.label, against.status) == ("contradicted", "contradicted")


def test_an_estimator_that_fails_leaves_the_words_verdict() -> None:
    found = verify_claim("Revenue was $5M in 2023.", EVIDENCE, estimator=Believes(Unavailable("timeout"), known(0.5)))
    assert (found.label, found.status) == ("supported", "unavailable")


def test_confidence_is_what_the_evidence_has_to_carry_the_claim_to() -> None:
    estimator = Believes(known(0.8), known(0.5))
    low = verify_claim("The moon is made of cheese.", EVIDENCE, 0.7, estimator=estimator)
    high = verify_claim("The moon is made of cheese.", EVIDENCE, 0.9, estimator=estimator)
    assert (low.target, low.status) == (0.7, "supported")
    assert (high.target, high.status) == (0.9, "not_entailed")


def test_every_claim_of_an_answer_has_its_budget() -> None:
    report = verify_claims("Revenue was $5M in 2023. Revenue was $6M in 2023. Is that much?", EVIDENCE)
    statuses = [judgement.budget.status for judgement in report.choices[0].judgements if judgement.budget]
    assert statuses == ["supported", "contradicted", "unavailable"]


def test_a_trace_is_audited_and_its_answer_derived() -> None:
    audit = audit_trace(["Revenue was $5M in 2023.", "The moon is made of cheese."], EVIDENCE, "5 million dollars")
    assert [step.status for step in audit.steps] == ["ENTAILED", "NOT_IN_CONTEXT"]
    assert audit.post_hoc
    assert audit.post_hoc.status == "not_derived"
    assert audit_trace(["Revenue was $5M in 2023."], EVIDENCE, "5 million dollars").is_sound


def test_a_trace_is_audited_by_an_estimator() -> None:
    audit = audit_trace(["The moon is made of cheese."], EVIDENCE, estimator=Believes(known(0.99), known(0.5)))
    assert [step.status for step in audit.steps] == ["ENTAILED"]
    assert audit.post_hoc is None


def test_the_async_twins_return_the_same_results() -> None:
    async def said() -> tuple[ClaimResult, object, object]:
        return (
            await verify_claim_async("Revenue was $6M in 2023.", EVIDENCE),
            await verify_claims_async("Revenue was $6M in 2023.", EVIDENCE),
            await audit_trace_async(["Revenue was $5M."], EVIDENCE, "$5M"),
        )

    claim, report, audit = asyncio.run(said())
    assert claim == verify_claim("Revenue was $6M in 2023.", EVIDENCE)
    assert report == verify_claims("Revenue was $6M in 2023.", EVIDENCE)
    assert audit == audit_trace(["Revenue was $5M."], EVIDENCE, "$5M")


def test_the_plain_functions_work_where_an_event_loop_runs() -> None:
    async def in_a_notebook() -> ClaimResult:
        return verify_claim("The moon is made of cheese.", EVIDENCE, estimator=Believes(known(0.99), known(0.5)))

    assert asyncio.run(in_a_notebook()).label == "supported"
