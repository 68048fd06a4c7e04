"""Facts that the memory gate accepts, with their confidence, and facts that it rejects."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from groundwire.domain import Budget, Probability, Unavailable
from groundwire.features.memory import UNVERIFIED_SHARE, GatePolicy, admit
from groundwire.features.probe import from_samples
from groundwire.scoring.budget import kl_bits, measure, target_of, unasked

LENIENT = GatePolicy(reject_unsupported=False)
probabilities = st.floats(0.0, 1.0)


def known(value: float) -> Probability:
    return Probability(value, value, value, "logprobs")


def budget(p0: float | None, p1: float, target: float = 0.95) -> Budget:
    return measure(known(p1), None if p0 is None else known(p0), target=target)


def test_confidence_is_the_lesser_of_what_is_stated_and_what_is_observed_over_required() -> None:
    ratio = kl_bits(0.9, 0.5) / kl_bits(0.95, 0.5)
    assert admit(0.99, budget(0.5, 0.9)).confidence == pytest.approx(ratio)
    assert admit(0.6, budget(0.5, 0.9)).confidence == 0.6


@pytest.mark.parametrize(
    ("p0", "p1", "grounding", "share"),
    [
        pytest.param(0.5, 0.99, "grounded", 1.0, id="supported"),
        pytest.param(0.5, 0.5, "ungrounded", 0.0, id="evidence that changes nothing"),
        pytest.param(0.5, 0.0, "ungrounded", 0.0, id="contradicted from even odds"),
        pytest.param(0.9, 0.01, "ungrounded", 0.0, id="contradicted from belief"),
        pytest.param(0.99, 0.99, "grounded", 1.0, id="nothing required and nothing lost"),
        pytest.param(0.95, 0.95, "grounded", 1.0, id="zero bits required, zero observed"),
        pytest.param(0.99, 0.9, "ungrounded", 0.0, id="both bits negative"),
        pytest.param(0.0, 0.99, "grounded", 1.0, id="from certain disbelief"),
        pytest.param(0.0, 0.0, "ungrounded", 0.0, id="disbelieved anyway"),
        pytest.param(1.0, 0.5, "ungrounded", 0.0, id="from certain belief"),
        pytest.param(1.0, 1.0, "grounded", 1.0, id="certain anyway"),
    ],
)
def test_signs_and_zeros(p0: float, p1: float, grounding: str, share: float) -> None:
    admission = admit(0.8, budget(p0, p1))
    assert (admission.grounding, admission.share) == (grounding, share)
    if grounding == "grounded":
        assert (admission.confidence, admission.rejected) == (0.8, None)
    else:
        assert (admission.confidence, admission.rejected) == (None, "fact_not_grounded")


def test_from_certain_disbelief_the_ratio_has_a_limit() -> None:
    nearly, wholly = (admit(1.0, budget(p0, 0.6), GatePolicy(0.1)).share for p0 in (1e-300, 0.0))
    assert wholly == pytest.approx(0.6 / 0.95)
    assert nearly == pytest.approx(wholly, rel=0.01)


@pytest.mark.parametrize("cause", ["timeout", "error", "rate_limited", "no_verdict"])
def test_a_fact_that_could_not_be_checked_is_accepted_with_less_confidence_and_marked(cause: str) -> None:
    admission = admit(0.9, measure(Unavailable(cause)))  # type: ignore[arg-type]
    assert (admission.rejected, admission.grounding, admission.share) == (None, "unverified", None)
    assert admission.confidence == pytest.approx(0.9 * UNVERIFIED_SHARE)


def test_without_p0_a_fact_between_is_unverified_and_a_disbelieved_one_rejected() -> None:
    between, low = (admit(0.9, measure(known(p1), Unavailable("timeout"))) for p1 in (0.7, 0.02))
    assert (between.grounding, between.rejected) == ("unverified", None)
    assert 0.0 < (between.confidence or 0.0) <= 0.45
    assert low.rejected == "fact_not_grounded"


@pytest.mark.parametrize(
    ("yes", "no", "grounding", "rejected"),
    [
        pytest.param(2, 0, "unverified", None, id="two say yes"),
        pytest.param(1, 1, "unverified", None, id="they differ"),
        pytest.param(20, 0, "grounded", None, id="all of many say yes"),
        pytest.param(0, 20, "ungrounded", "fact_not_grounded", id="all of many say no"),
    ],
)
def test_few_samples_leave_a_fact_unverified_and_many_decide(yes: int, no: int, grounding: str, rejected: str) -> None:
    admission = admit(0.9, measure(from_samples(yes, no), known(0.5), target=0.7))
    assert (admission.grounding, admission.rejected) == (grounding, rejected)
    assert grounding != "unverified" or admission.confidence <= 0.45  # type: ignore[operator]


@pytest.mark.parametrize("status", ["no_context", "unknown_citation"])
def test_a_fact_without_evidence_is_not_grounded(status: str) -> None:
    found = unasked(has_context=status != "no_context", unknown=("7",))
    assert found
    assert admit(0.9, found).rejected == "fact_not_grounded"


def test_a_lenient_gate_accepts_an_unsupported_fact_but_no_contradicted_one() -> None:
    kept = admit(0.9, budget(0.5, 0.6), LENIENT)
    assert (kept.rejected, kept.grounding) == (None, "ungrounded")
    assert kept.confidence == pytest.approx(kl_bits(0.6, 0.5) / kl_bits(0.95, 0.5))
    assert admit(0.9, budget(0.5, 0.01), LENIENT).rejected == "fact_not_grounded"


def test_a_grounded_fact_of_too_little_confidence_is_rejected_for_that() -> None:
    assert admit(0.3, budget(0.5, 0.99)).rejected == "below_min_confidence"


@pytest.mark.parametrize(
    ("stated", "method", "target"),
    [
        (0.8, "logprobs", 0.8),
        (1.0, "logprobs", 0.95),
        (0.1, "logprobs", 0.55),
        (0.9, "verifier", 0.55),
        (0.9, "samples", 0.7),
    ],
)
def test_evidence_must_carry_a_fact_to_its_stated_confidence(stated: float, method: str, target: float) -> None:
    assert target_of(stated, method) == target  # type: ignore[arg-type]


@given(probabilities, probabilities, probabilities, probabilities)
def test_more_belief_with_the_evidence_never_means_less_confidence(
    p0: float, one: float, other: float, stated: float
) -> None:
    low, high = (admit(stated, budget(p0, p1), GatePolicy(0.0, False)) for p1 in sorted((one, other)))
    assume(low.grounding == high.grounding == "grounded")
    assert (low.confidence or 0.0) <= (high.confidence or 0.0) + 1e-12 <= stated + 2e-12


@given(probabilities, probabilities, probabilities, st.floats(1e-9, 0.5))
def test_no_decision_depends_on_the_clip(p0: float, p1: float, stated: float, clip: float) -> None:
    clipped = [Probability(p, p, p, "logprobs", resolution=clip) for p in (p1, p0)]
    assert admit(stated, measure(*clipped)) == admit(stated, budget(p0, p1))
