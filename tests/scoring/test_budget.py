"""Signed bits, and statuses that no clip decides."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from groundwire.claims.answer import find_claims
from groundwire.domain import BudgetStatus, Claim, Estimate, Method, Probability, Unavailable
from groundwire.features.probe import exactly
from groundwire.policy import Policy
from groundwire.scoring.budget import (
    LABELS,
    TARGET,
    TARGETS,
    Ablation,
    claim_target,
    gap_bits,
    gap_bounds,
    is_flagged,
    kl_bits,
    measure,
    needs_p0,
    signed_bits,
    unasked,
)

shares = st.floats(0, 1)
inner = st.floats(1e-9, 1 - 1e-9)
clips = st.floats(1e-12, 0.5)


@st.composite
def intervals(draw: st.DrawFn) -> Probability:
    lower, value, upper = sorted(draw(shares) for _ in range(3))
    return Probability(value, lower, upper, "samples")


def within(lower: float, upper: float) -> Probability:
    return Probability((lower + upper) / 2, lower, upper, "logprobs")


# --- statuses ---------------------------------------------------------------------------------------------------------

TABLE: list[tuple[float, float, BudgetStatus, bool]] = [
    # p0, p1, status, flagged
    (0.5, 0.99, "supported", False),
    (0.05, 0.99, "supported", False),
    (0.5, TARGET, "supported", False),
    (TARGET, TARGET, "prior_leak", False),
    (0.5, 0.5, "not_entailed", True),
    (0.5, 0.94, "not_entailed", True),
    (0.01, 0.6, "not_entailed", True),
    (0.99, 0.5, "not_entailed", True),
    (0.5, 0.0, "contradicted", True),
    (0.9, 0.01, "contradicted", True),
    (0.99, 0.01, "contradicted", True),
    (0.02, 0.001, "not_entailed", True),
    (0.0, 0.0, "not_entailed", True),
    (0.99, 0.99, "prior_leak", False),
    (0.99, 0.96, "prior_leak", False),
    (1.0, 1.0, "prior_leak", False),
    (0.0, 1.0, "supported", False),
]


@pytest.mark.parametrize(("p0", "p1", "status", "flagged"), TABLE)
def test_the_status_of_two_probabilities(p0: float, p1: float, status: BudgetStatus, flagged: bool) -> None:
    budget = measure(exactly(p1), exactly(p0))
    assert budget.status == status
    assert is_flagged(budget) is flagged


@pytest.mark.parametrize(("p0", "p1"), [(0.5, 0.0), (0.9, 0.01)])
def test_evidence_that_speaks_against_the_claim_would_pass_without_a_sign(p0: float, p1: float) -> None:
    budget = measure(exactly(p1), exactly(p0))
    assert budget.required_bits is not None
    assert budget.observed_bits is not None
    assert kl_bits(p1, p0) > budget.required_bits, "this is the hole that the sign closes"
    assert budget.observed_bits < 0 < budget.required_bits


@given(intervals(), intervals())
def test_support_never_comes_from_evidence_that_lowers_belief(p0: Probability, p1: Probability) -> None:
    if measure(p1, p0).status == "supported":
        assert p1.lower > p0.upper


@given(shares, shares, shares)
def test_a_status_never_worsens_as_p1_rises(p0: float, one: float, other: float) -> None:
    order = {"contradicted": 0, "not_entailed": 1, "supported": 2, "prior_leak": 2}
    low, high = (measure(exactly(p1), exactly(p0)).status for p1 in sorted((one, other)))
    assert order[low] <= order[high]


@given(intervals(), intervals(), clips, clips)
def test_no_clip_decides_anything(p0: Probability, p1: Probability, one: float, other: float) -> None:
    decided = [measure(p1, replace(p0, resolution=clip)) for clip in (one, other)]
    assert decided[0].status == decided[1].status
    for threshold in (0.0, 0.5, 2.0):
        assert is_flagged(decided[0], threshold) is is_flagged(decided[1], threshold)


@given(shares, shares, clips)
def test_the_gap_has_the_same_sign_at_every_clip(p0: float, p1: float, clip: float) -> None:
    assume(abs(p1 - TARGET) > 1e-6)
    budget = measure(exactly(p1), replace(exactly(p0), resolution=clip))
    assert budget.budget_gap is not None
    assert math.isfinite(budget.budget_gap)
    assert (budget.budget_gap > 0) is (p1 < TARGET)
    assert budget.resolution == clip


@given(intervals(), intervals(), shares, shares)
def test_a_decided_status_is_that_of_every_pair_in_the_intervals(
    p0: Probability, p1: Probability, one: float, other: float
) -> None:
    status = measure(p1, p0).status
    assume(status != "ambiguous")
    inside = [min(p.upper, p.lower + share * (p.upper - p.lower)) for p, share in ((p0, one), (p1, other))]
    assert measure(exactly(inside[1]), exactly(inside[0])).status == status


@pytest.mark.parametrize(
    ("p0", "p1", "status"),
    [
        pytest.param(within(0.1, 0.6), within(0.96, 1.0), "supported", id="wide where nothing hangs on it"),
        pytest.param(within(0.9, 0.97), within(0.96, 1.0), "ambiguous", id="perhaps known anyway"),
        pytest.param(within(0.5, 0.5), within(0.7, 1.0), "ambiguous", id="perhaps believed"),
        pytest.param(within(0.5, 0.5), within(0.0, 0.3), "ambiguous", id="perhaps disbelieved"),
        pytest.param(within(0.0, 0.01), within(0.0, 0.3), "not_entailed", id="disbelieved anyway"),
        pytest.param(within(0.0, 1.0), within(0.1, 0.9), "not_entailed", id="whatever p0 is"),
        pytest.param(within(0.0, 1.0), within(0.0, 1.0), "ambiguous", id="nothing is known"),
    ],
)
def test_a_status_is_decided_by_whole_intervals(p0: Probability, p1: Probability, status: BudgetStatus) -> None:
    assert measure(p1, p0).status == status


@pytest.mark.parametrize(
    ("p1", "needed"),
    [
        pytest.param(exactly(0.99), True, id="believed: supported or known anyway"),
        pytest.param(exactly(0.01), True, id="disbelieved: contradicted or implausible anyway"),
        pytest.param(exactly(0.5), False, id="undecided: not entailed whatever it was before"),
        pytest.param(within(0.7, 1.0), False, id="perhaps believed: open whatever it was before"),
        pytest.param(within(0.0, 0.3), True, id="perhaps disbelieved: not entailed if implausible anyway"),
        pytest.param(Unavailable("timeout"), False, id="unavailable"),
    ],
)
def test_p0_is_requested_only_where_it_can_matter(p1: Estimate, needed: bool) -> None:
    assert needs_p0(p1) is needed


def test_a_threshold_in_bits_can_make_p0_matter() -> None:
    assert needs_p0(exactly(0.5), threshold_bits=1.0)


@given(intervals())
def test_no_p0_changes_a_status_that_does_not_need_one(p1: Probability) -> None:
    if not needs_p0(p1):
        assert {measure(p1, exactly(p0)).status for p0 in (0.0, 0.04, 0.5, 0.96, 1.0)} <= {
            measure(p1).status,
            "ambiguous",
        }


def test_a_claim_that_needs_p0_and_has_none_is_not_decided() -> None:
    assert measure(exactly(0.99)).status == "ambiguous"
    assert measure(exactly(0.99), Unavailable("timeout")).status == "unavailable"


@pytest.mark.parametrize("p0", [None, Unavailable("error")], ids=["not asked", "failed"])
def test_a_claim_that_is_undecided_needs_no_p0(p0: Unavailable | None) -> None:
    budget = measure(exactly(0.5), p0)
    assert budget.status == "not_entailed"
    assert is_flagged(budget)
    assert (budget.required_bits, budget.observed_bits, budget.budget_gap) == (None, None, None)


def test_without_p1_nothing_is_decided() -> None:
    budget = measure(Unavailable("rate_limited"), exactly(0.5))
    assert budget.status == "unavailable"
    assert not is_flagged(budget)


def test_no_model_is_called_without_context_or_for_an_unknown_citation() -> None:
    no_context, unknown = unasked(has_context=False), unasked(has_context=True, unknown=["9"])
    assert no_context is not None
    assert unknown is not None
    assert (no_context.status, unknown.status) == ("no_context", "unknown_citation")
    assert unasked(has_context=True) is None


@pytest.mark.parametrize("target", [0.0, 0.5, 1.0, math.nan])
def test_a_target_that_a_claim_and_its_negation_could_both_reach_is_refused(target: float) -> None:
    with pytest.raises(ValueError, match="target"):
        measure(exactly(0.5), exactly(0.5), target=target)


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        ("Revenue rose in 2023.", 0.95),
        ("Revenue definitely rose in 2023.", 0.95),
        ("Revenue probably rose in 2023.", 0.7),
        ("Revenue may have risen in 2023.", 0.6),
        ("Revenue rose in 2023 (80% confident).", 0.8),
        ("Perhaps revenue rose in 2023.", 0.55),
    ],
)
def test_the_target_of_a_claim_is_the_confidence_that_the_answer_states(answer: str, target: float) -> None:
    (claim,) = find_claims(answer, Policy(verify_hedged=True)).claims
    assert claim_target(claim, "logprobs") == target


@given(shares, shares, st.sampled_from(get_args(Method)))
def test_a_target_never_falls_as_the_stated_confidence_rises(one: float, other: float, method: Method) -> None:
    low, high = (claim_target(Claim("", "", 0, 0, stated_confidence=each), method) for each in sorted((one, other)))
    assert 0.5 < low <= high <= TARGETS[method]


def test_every_status_has_a_label_and_only_decided_ones_are_checked() -> None:
    assert set(LABELS) == set(get_args(BudgetStatus))
    assert {status for status, label in LABELS.items() if label in ("contradicted", "unsupported")} == {
        "contradicted",
        "not_entailed",
    }


# --- decorative citations ---------------------------------------------------------------------------------------------

BELIEVED, OPEN = exactly(0.98), exactly(0.5)


@pytest.mark.parametrize(
    ("ablations", "decorative"),
    [
        pytest.param([Ablation(OPEN, BELIEVED), Ablation(BELIEVED, OPEN)], (1,), id="the second changes nothing"),
        pytest.param([Ablation(BELIEVED, BELIEVED), Ablation(BELIEVED, BELIEVED)], (), id="both say the same"),
        pytest.param([Ablation(OPEN, OPEN), Ablation(OPEN, OPEN)], (), id="only both together say it"),
        pytest.param([Ablation(OPEN, BELIEVED), Ablation(Unavailable("timeout"), OPEN)], (), id="not known"),
        pytest.param([Ablation(OPEN, BELIEVED), Ablation(within(0.9, 1.0), OPEN)], (), id="perhaps it changes it"),
    ],
)
def test_a_citation_is_decorative_that_changes_nothing_with_the_others_or_alone(
    ablations: list[Ablation], decorative: tuple[int, ...]
) -> None:
    budget = measure(BELIEVED, OPEN, ablations)
    assert budget.decorative == decorative
    assert budget.status == ("decorative_citation" if decorative else "supported")


@pytest.mark.parametrize(("p0", "p1"), [(0.5, 0.5), (0.5, 0.01), (0.99, 0.99)])
def test_only_a_supported_claim_has_decorative_citations(p0: float, p1: float) -> None:
    budget = measure(exactly(p1), exactly(p0), [Ablation(exactly(p1), exactly(p0))])
    assert budget.status != "decorative_citation"


# --- bits -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q", "bits"),
    [
        (0.5, 0.5, 0.0),
        (1.0, 0.5, 1.0),
        (0.0, 0.5, 1.0),
        (1.0, 0.25, 2.0),
        (0.75, 0.5, 0.75 * math.log2(1.5) + 0.25 * math.log2(0.5)),
        (0.5, 0.0, math.inf),
        (0.5, 1.0, math.inf),
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 0.0),
    ],
)
def test_kl_of_two_bernoulli_distributions_in_bits(p: float, q: float, bits: float) -> None:
    assert kl_bits(p, q) == pytest.approx(bits)


@given(shares, shares)
def test_kl_is_never_negative_and_zero_only_between_equals(p: float, q: float) -> None:
    assert kl_bits(p, q) >= 0.0
    assert kl_bits(p, p) == 0.0
    if abs(p - q) > 1e-6:
        assert kl_bits(p, q) > 0.0


@given(inner, inner)
def test_kl_is_the_same_of_a_claim_and_of_its_negation(p: float, q: float) -> None:
    assert kl_bits(p, q) == pytest.approx(kl_bits(1 - p, 1 - q), rel=1e-6, abs=1e-9)
    assert signed_bits(p, q) == pytest.approx(-signed_bits(1 - p, 1 - q), rel=1e-6, abs=1e-9)


@given(shares, inner)
def test_kl_exceeds_the_bound_of_pinsker(p: float, q: float) -> None:
    assert kl_bits(p, q) >= 2 * (p - q) ** 2 / math.log(2) - 1e-9


@given(inner, shares, shares)
def test_signed_bits_never_fall_as_belief_rises(q: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert signed_bits(low, q) <= signed_bits(high, q) + 1e-9


@given(intervals(), intervals(), shares, shares)
def test_the_gap_lies_between_its_bounds(p0: Probability, p1: Probability, one: float, other: float) -> None:
    low, high = gap_bounds(p0, p1, TARGET)
    inside = [min(p.upper, p.lower + share * (p.upper - p.lower)) for p, share in ((p0, one), (p1, other))]
    assert low - 1e-9 <= gap_bits(inside[0], inside[1], TARGET) <= high + 1e-9


@pytest.mark.parametrize("p0", [0.0, 1.0])
@pytest.mark.parametrize("p1", [0.0, 0.5, 1.0])
def test_reported_bits_are_finite_and_at_most_those_that_the_clip_allows(p0: float, p1: float) -> None:
    clip = 0.01
    budget = measure(exactly(p1), replace(exactly(p0), resolution=clip))
    assert budget.required_bits is not None
    assert budget.observed_bits is not None
    assert abs(budget.required_bits) <= -math.log2(clip)
    assert abs(budget.observed_bits) <= -math.log2(clip)


def test_a_claim_that_is_perhaps_believed_is_not_flagged() -> None:
    assert not is_flagged(measure(within(0.6, 0.96), exactly(0.5)))
    assert is_flagged(measure(within(0.6, 0.94), exactly(0.5)))


def test_a_known_claim_requires_no_bits() -> None:
    budget = measure(exactly(0.99), exactly(0.99))
    assert budget.required_bits is not None
    assert budget.required_bits < 0 == budget.observed_bits


def test_a_flag_with_a_threshold_needs_that_many_bits_for_certain() -> None:
    low, high = gap_bounds(within(0.2, 0.3), within(0.4, 0.6), TARGET)
    budget = measure(within(0.4, 0.6), within(0.2, 0.3))
    assert is_flagged(budget, low - 0.01)
    assert not is_flagged(budget, (low + high) / 2)
