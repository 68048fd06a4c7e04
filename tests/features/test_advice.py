"""Thresholds are advised from decisions, if there are enough and the cut is beyond chance."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.features.advice import Decision, advise


def decided(scores: list[float], is_right: bool, flag: str = "unsupported_claims") -> list[Decision]:
    return [Decision(flag, "statement", score, is_right) for score in scores]


def test_a_cut_is_advised_if_false_alarms_score_higher() -> None:
    right, wrong = [0.1 + at / 1000 for at in range(30)], [0.4 + at / 1000 for at in range(15)]
    (advice,) = advise(decided(right, True) + decided(wrong, False))
    assert advice.cut == 0.4
    assert (advice.right_lost, advice.wrong_saved) == (0, 15)
    assert (round(advice.precision, 3), advice.precision_then) == (0.667, 1.0)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ([0.1] * 10, [0.4] * 9),
        ([0.1] * 40, [0.4] * 4),
        ([0.3] * 40, [0.3] * 40),
        ([0.4] * 40, [0.1] * 40),
        ([], [0.4] * 40),
    ],
    ids=["too few", "too few of one kind", "all the same", "the wrong way round", "none right"],
)
def test_inconclusive_decisions_give_no_advice(right: list[float], wrong: list[float]) -> None:
    assert advise(decided(right, True) + decided(wrong, False)) == ()


def test_chance_is_no_advice() -> None:
    told = 0
    for seed in range(40):
        dice = random.Random(seed)
        told += len(advise([Decision("f", "v", dice.random(), dice.random() < 0.5) for _ in range(60)]))
    assert told <= 4


def test_each_flag_is_advised_on_apart() -> None:
    clear = decided([0.1] * 30, True) + decided([0.4] * 30, False)
    mixed = decided([0.1, 0.4] * 20, True, "misattributed") + decided([0.1, 0.4] * 20, False, "misattributed")
    assert [advice.flag for advice in advise(clear + mixed)] == ["unsupported_claims"]


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.8]), st.booleans()), max_size=80))
def test_advice_never_makes_flags_less_right_and_keeps_nine_in_ten(pairs: list[tuple[float, bool]]) -> None:
    for advice in advise([Decision("f", "v", score, is_right) for score, is_right in pairs]):
        assert advice.precision_then > advice.precision
        assert advice.right_lost <= advice.right / 10
        assert advice.wrong_saved > 0
