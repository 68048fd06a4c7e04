"""A probability is known as an interval, from the tokens in the logprobs or from samples."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.domain import Probability, Unavailable
from groundwire.features.probe import (
    Masses,
    exactly,
    from_masses,
    from_samples,
    unanimous_samples,
)

shares = st.floats(0, 1, allow_nan=False)


def known(estimate: Probability | Unavailable) -> Probability:
    assert isinstance(estimate, Probability)
    return estimate


@st.composite
def masses(draw: st.DrawFn) -> Masses:
    weights = [draw(st.floats(0, 1)) for _ in range(6)]
    total = math.fsum(weights) or 1.0
    return Masses(*(weight / total for weight in weights[:5]))


@pytest.mark.parametrize(
    ("seen", "lower", "upper"),
    [
        pytest.param(Masses(yes=0.9, no=0.1), 0.9, 0.9, id="all is shown"),
        pytest.param(Masses(yes=0.45, no=0.05, other=0.5), 0.9, 0.9, id="what is neither is left out"),
        pytest.param(Masses(yes=0.7), 0.7, 1.0, id="only the chosen token is shown"),
        pytest.param(Masses(no=0.7), 0.0, 0.3, id="only the chosen token is shown, a NO"),
        pytest.param(Masses(yes=0.8, no=0.1), 0.8, 0.9, id="a tenth is not shown"),
        pytest.param(Masses(yes=0.8, maybe_no=0.2), 0.8, 1.0, id="an N may become NO"),
        pytest.param(Masses(yes=0.5, no=0.3, maybe_yes=0.2), 0.625, 0.7, id="a Y may become YES"),
    ],
)
def test_bounds_give_what_was_not_shown_to_either_side(seen: Masses, lower: float, upper: float) -> None:
    found = known(from_masses(seen))
    assert (found.lower, found.upper) == pytest.approx((lower, upper))


def test_the_residual_is_the_mass_of_neither_yes_nor_no() -> None:
    assert known(from_masses(Masses(yes=0.6, no=0.1, other=0.2))).residual == pytest.approx(0.3)


@pytest.mark.parametrize(
    "seen",
    [Masses(), Masses(other=1.0), Masses(yes=0.2, no=0.1, other=0.7), Masses(maybe_yes=0.9)],
    ids=["nothing", "only something else", "mostly something else", "only beginnings"],
)
def test_without_an_answer_there_is_no_probability(seen: Masses) -> None:
    assert from_masses(seen) == Unavailable("no_verdict")


@given(masses(), shares, shares)
def test_any_split_of_the_unseen_mass_stays_inside_the_bounds(seen: Masses, to_yes: float, of_rest: float) -> None:
    found = from_masses(seen)
    if isinstance(found, Unavailable):
        return
    unseen = max(0.0, 1.0 - seen.yes - seen.no - seen.other - seen.maybe_yes - seen.maybe_no)
    yes = seen.yes + seen.maybe_yes * of_rest + unseen * to_yes
    no = seen.no + seen.maybe_no * of_rest + unseen * (1 - to_yes) * of_rest
    assert found.lower - 1e-9 <= yes / (yes + no) <= found.upper + 1e-9


@pytest.mark.parametrize(
    ("yes", "no", "lower", "upper"),
    [
        # The exact intervals, as tabulated for the binomial distribution.
        (10, 0, 0.6915, 1.0),
        (0, 10, 0.0, 0.3085),
        (5, 5, 0.1871, 0.8129),
        (3, 0, 0.2924, 1.0),
        (1, 0, 0.025, 1.0),
        (48, 2, 0.8629, 0.9951),
    ],
)
def test_samples_have_the_interval_of_clopper_and_pearson(yes: int, no: int, lower: float, upper: float) -> None:
    found = known(from_samples(yes, no))
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=1e-4)
    assert found.value == yes / (yes + no)


@given(st.floats(0.02, 0.98), st.integers(1, 25))
def test_the_interval_of_samples_covers_what_it_promises(p: float, count: int) -> None:
    covered = sum(
        math.comb(count, yes) * p**yes * (1 - p) ** (count - yes)
        for yes in range(count + 1)
        if (found := known(from_samples(yes, count - yes))).lower <= p <= found.upper
    )
    assert covered >= 0.95 - 1e-9


@pytest.mark.parametrize(
    ("counts", "cause"),
    [((0, 0, 0), "no_samples"), ((0, 0, 3), "no_verdict"), ((1, 0, 2), "no_verdict")],
    ids=["none", "none says YES or NO", "most say something else"],
)
def test_without_samples_that_answer_there_is_no_probability(counts: tuple[int, int, int], cause: str) -> None:
    assert from_samples(*counts) == Unavailable(cause)  # type: ignore[arg-type]


def test_samples_without_yes_or_no_are_the_residual() -> None:
    assert known(from_samples(6, 2, 2)).residual == pytest.approx(0.2)


@pytest.mark.parametrize("target", [0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_so_many_unanimous_samples_reach_the_target_and_one_less_does_not(target: float) -> None:
    count = unanimous_samples(target)
    assert known(from_samples(count, 0)).lower >= target > known(from_samples(count - 1, 0)).lower


@pytest.mark.parametrize("bounds", [(0.5, 0.6, 0.7), (0.5, 0.2, 0.4), (1.2, 0.0, 1.3), (math.nan, 0.0, 1.0)], ids=str)
def test_an_invalid_probability_is_refused(bounds: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="no probability"):
        Probability(*bounds, method="samples")


def test_an_exactly_known_probability_has_no_width() -> None:
    assert exactly(0.25).lower == exactly(0.25).upper == 0.25
