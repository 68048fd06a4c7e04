"""Claims passed on to a model, and changes of verdict by its answer, none if it gives no answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from groundwire.domain import (
    Budget,
    Citation,
    Claim,
    Estimate,
    Judgement,
    Method,
    Probability,
    Source,
    Unavailable,
    Verdict,
)
from groundwire.evidence.index import Context
from groundwire.features.information_budget import cited_evidence, is_undecided, joined
from groundwire.features.probe import exactly
from groundwire.policy import ModelPolicy, Policy
from groundwire.scoring.aggregate import lacks_bits
from groundwire.scoring.budget import measure

POLICY = Policy(model=ModelPolicy(backend="haiku"))
CONTEXT = Context([Source("s1", "source", "The board met in Oslo.", labels=("1",)), Source("s2", "user", "It rained.")])
CLAIM = Claim("c1", "The board met in Norway.", 0, 24, cited=("1",))
PLACE = Citation("s1", 0, 22, "The board met in Oslo.", 0.6, "words")


def verdict(label: str, score: float, verifier: str = "statement", method: str = "words") -> Verdict:
    return Verdict(verifier, label, score, method, "So it reads.", (PLACE,))  # type: ignore[arg-type]


def judged(*verdicts: Verdict) -> Judgement:
    return Judgement(CLAIM, verdicts[0], 0.5, verdicts)


OPEN = judged(verdict("supported", 0.6))


@pytest.mark.parametrize(
    ("judgement", "undecided"),
    [
        pytest.param(OPEN, True, id="in the band"),
        pytest.param(judged(verdict("unsupported", 0.3, method="none")), True, id="doubted"),
        pytest.param(judged(verdict("supported", 0.85)), False, id="sure enough"),
        pytest.param(judged(verdict("unsupported", 0.1)), False, id="sure enough that not"),
        pytest.param(judged(verdict("supported", 0.6, method="exact")), False, id="word for word"),
        pytest.param(judged(verdict("contradicted", 0.34)), False, id="a veto"),
        pytest.param(judged(verdict("unsupported", 0.0, "numeric"), verdict("supported", 0.6)), False, id="a number"),
        pytest.param(
            judged(verdict("supported", 1.0, "numeric"), verdict("supported", 0.6)), True, id="its numbers do"
        ),
        pytest.param(judged(verdict("not_checked", 0.0, "quote"), verdict("supported", 0.6)), False, id="not checked"),
        pytest.param(judged(verdict("supported", 1.0, "quote")), False, id="only a quotation"),
    ],
)
def test_claims_undecided_by_word_matching_go_to_the_model(judgement: Judgement, undecided: bool) -> None:
    assert is_undecided(judgement, POLICY.model) is undecided


@pytest.mark.parametrize(("probability_min", "probability_max"), [(0.0, 0.6), (0.61, 1.0), (0.5, 0.5)])
def test_the_band_is_half_open(probability_min: float, probability_max: float) -> None:
    assert not is_undecided(
        OPEN, replace(POLICY.model, probability_min=probability_min, probability_max=probability_max)
    )


def test_the_cited_evidence_is_the_full_text_of_each_named_source() -> None:
    citations, unknown = cited_evidence(replace(CLAIM, cited=("1", "7", "s1")), CONTEXT)
    assert [(each.source, each.text) for each in citations] == [("s1", "The board met in Oslo.")]
    assert unknown == ("7",)


def test_a_citation_of_a_slice_counts_into_the_original() -> None:
    source = Source("m0.d1", "document", "It rained.", message_index=0, part_index=0, offset=40, labels=("1",))
    ((citation,), _) = cited_evidence(CLAIM, Context([source]))
    assert (citation.start, citation.end) == (40, 50)


@pytest.mark.parametrize(
    ("p1", "p0", "label", "method"),
    [
        pytest.param(0.99, 0.4, "supported", "supported", id="supported"),
        pytest.param(0.01, 0.4, "contradicted", "contradicted", id="contradicted"),
        pytest.param(0.5, None, "unsupported", "not_entailed", id="not entailed"),
    ],
)
def test_a_budget_that_is_decided_decides(p1: float, p0: float | None, label: str, method: str) -> None:
    after = joined(OPEN, measure(exactly(p1), None if p0 is None else exactly(p0)), CONTEXT, POLICY)
    assert (after.verdict.label, after.verdict.method, after.verdict.verifier) == (label, method, "model")
    assert after.verdict.score == p1
    assert [each.match for each in after.verdict.citations] == ["model"]
    assert [each.verifier for each in after.verdicts] == ["statement", "model"]
    assert f"{p1:.0%}" in after.verdict.reason


@pytest.mark.parametrize(
    ("method", "p0", "contradiction", "label"),
    [
        ("service", 0.99, None, "unsupported"),
        ("service", 0.4, 0.2, "unsupported"),
        ("service", 0.4, 0.9, "contradicted"),
        ("logprobs", 0.4, None, "unsupported"),
        ("samples", 0.4, None, "unsupported"),
        ("logprobs", 0.99, None, "contradicted"),
    ],
)
def test_disbelief_is_no_contradiction_by_itself(
    method: Method, p0: float, contradiction: float | None, label: str
) -> None:
    low = Probability(0.01, 0.01, 0.01, method, contradiction=contradiction)
    budget = measure(low, Probability(p0, p0, p0, method), target=0.95)
    assert budget.status == "contradicted"
    after = joined(OPEN, budget, CONTEXT, POLICY)
    assert (after.verdict.label, after.budget) == (label, budget)


@pytest.mark.parametrize("before", [OPEN, judged(verdict("unsupported", 0.3))], ids=["supported", "unsupported"])
@pytest.mark.parametrize(
    "budget",
    [
        pytest.param(measure(exactly(0.99), exactly(0.99)), id="prior leak"),
        pytest.param(measure(replace(exactly(0.97), lower=0.9)), id="ambiguous"),
        pytest.param(Budget("unknown_citation", "", 0.95), id="unknown citation"),
    ],
)
def test_a_budget_that_decides_nothing_leaves_the_verdict(before: Judgement, budget: Budget) -> None:
    after = joined(before, budget, CONTEXT, POLICY)
    assert (after.verdict, after.confidence, after.budget) == (before.verdict, before.confidence, budget)


@pytest.mark.parametrize("p1", [0.99, 0.5, 0.01], ids=["believed", "open", "disbelieved"])
def test_a_model_lifts_no_contradiction_of_numbers_names_or_negations(p1: float) -> None:
    before, budget = judged(verdict("contradicted", 0.2)), measure(exactly(p1), exactly(0.5))
    after = joined(before, budget, CONTEXT, POLICY)
    assert (after.verdict, after.budget) == (before.verdict, budget)
    assert after.verdicts[-1].verifier == "model"
    own = measure(exactly(0.1), exactly(0.5), target=0.55)
    assert joined(replace(before, budget=own), budget, CONTEXT, POLICY).budget == own


def test_a_claim_that_is_surely_not_believed_is_unsupported_though_its_status_is_open() -> None:
    budget = measure(replace(exactly(0.3), lower=0.01, upper=0.6))
    assert budget.status == "ambiguous"
    assert joined(OPEN, budget, CONTEXT, POLICY).verdict.label == "unsupported"


@pytest.mark.parametrize(
    ("cause", "method"),
    [
        ("timeout", "timeout"),
        ("rate_limited", "rate_limited"),
        ("unreachable", "unavailable"),
        ("overload", "overload"),
        ("error", "error"),
        ("no_verdict", "no_verdict"),
    ],
)
@pytest.mark.parametrize("before", [OPEN, judged(verdict("unsupported", 0.3))], ids=["supported", "unsupported"])
def test_no_answer_leaves_the_verdict_with_less_confidence(cause: str, method: str, before: Judgement) -> None:
    missing: Estimate = Unavailable(cause)  # type: ignore[arg-type]
    after = joined(before, measure(missing), CONTEXT, POLICY)
    assert after.verdict == before.verdict
    assert after.confidence == pytest.approx(0.8 * before.confidence)
    assert (after.verdicts[-1].label, after.verdicts[-1].method) == ("not_checked", method)


@pytest.mark.parametrize("p1", [0.99, 0.01, 0.5])
def test_the_embedded_verifier_does_not_overrule_itself(p1: float) -> None:
    local = Policy(model=ModelPolicy(backend="local"))
    after = joined(OPEN, measure(exactly(p1), exactly(0.3), target=0.55), CONTEXT, local)
    assert replace(after, budget=None) == OPEN
    assert after.budget


@pytest.mark.parametrize(
    ("p1", "p0", "bits", "flagged"),
    [(0.5, 0.4, 0.0, True), (0.5, 0.4, 5.0, False), (0.99, 0.4, 0.0, False), (0.99, 0.99, 0.0, False)],
    ids=["short of bits", "not by so many", "enough", "known before"],
)
def test_a_budget_gap_from_the_threshold_on_is_flagged(p1: float, p0: float, bits: float, flagged: bool) -> None:
    policy = replace(POLICY, model=replace(POLICY.model, flag_threshold_bits=bits))
    assert lacks_bits(joined(OPEN, measure(exactly(p1), exactly(p0)), CONTEXT, policy), policy) is flagged
