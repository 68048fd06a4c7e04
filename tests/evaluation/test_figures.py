"""The figures of `groundwire eval`, against values worked out by hand."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.evaluation.figures import (
    auroc,
    balanced_accuracy,
    brier,
    f1,
    figures,
    gain,
    interval,
    percentile,
    span_f1,
)
from groundwire.evaluation.rows import Outcome
from groundwire.telemetry.reliability import Calibration


def outcome(label, flagged, support=0.5, spans=None, id_="x", ms=1.0, length=10):
    return Outcome(id_, label, flagged, support, 1.0, length, ms, spans)


TWO_HITS_ONE_MISS_ONE_FALSE_ALARM = [
    outcome(1, True, 0.1),
    outcome(1, True, 0.2),
    outcome(1, False, 0.7),
    outcome(0, True, 0.3),
    outcome(0, False, 0.9),
    outcome(0, False, 0.8),
    outcome(0, False, None),
]


def test_precision_recall_and_false_alarms_count_flagged_answers():
    found = figures(TWO_HITS_ONE_MISS_ONE_FALSE_ALARM)
    assert found.n == 7
    assert found.positives == pytest.approx(3 / 7)
    assert found.precision == pytest.approx(2 / 3)
    assert found.recall == pytest.approx(2 / 3)
    assert found.f1 == pytest.approx(2 / 3)
    assert found.false_alarms == pytest.approx(1 / 4)
    assert found.balanced_accuracy == pytest.approx((2 / 3 + 3 / 4) / 2)


def test_unchecked_answer_ranks_as_unsuspected_but_has_no_probability():
    found = figures(TWO_HITS_ONE_MISS_ONE_FALSE_ALARM)
    assert found.auroc == pytest.approx((4 + 4 + 3) / 12)
    assert found.brier == pytest.approx((0.01 + 0.04 + 0.49 + 0.49 + 0.01 + 0.04) / 6)


def test_set_without_ungrounded_answers_has_false_alarms_and_nothing_else():
    found = figures([outcome(0, True), outcome(0, False)])
    assert found.false_alarms == 0.5
    assert found.precision == 0
    assert found.recall is found.f1 is found.balanced_accuracy is found.auroc is found.span_f1 is None


def test_set_of_which_nothing_was_checked_has_no_calibration():
    found = figures([outcome(0, False, None), outcome(1, False, None)])
    assert found.ece is found.brier is None
    assert found.auroc == 0.5


@pytest.mark.parametrize(
    ("scored", "expected"),
    [
        pytest.param([(0.1, 0), (0.9, 1)], 1.0, id="right order"),
        pytest.param([(0.9, 0), (0.1, 1)], 0.0, id="wrong order"),
        pytest.param([(0.5, 0), (0.5, 1)], 0.5, id="a tie counts half"),
        pytest.param([(0.1, 0), (0.4, 0), (0.35, 1), (0.8, 1)], 0.75, id="three of four pairs"),
        pytest.param([(0.5, 1)], None, id="one class"),
        pytest.param([], None, id="nothing"),
    ],
)
def test_auroc_is_the_share_of_pairs_in_order(scored, expected):
    assert auroc(scored) == expected


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), st.integers(0, 1)), max_size=30))
def test_auroc_equals_the_count_over_all_pairs(scored):
    pairs = [(p, n) for p, is_p in scored if is_p for n, is_n in scored if not is_n]
    expected = sum((p > n) + (p == n) / 2 for p, n in pairs) / len(pairs) if pairs else None
    assert auroc(scored) == (expected if expected is None else pytest.approx(expected))


def test_span_f1_adds_up_characters_of_all_answers():
    assert span_f1([outcome(1, True, spans=(10, 20, 5)), outcome(0, True, spans=(5, 0, 0))]) == pytest.approx(10 / 35)
    assert span_f1([outcome(1, True, spans=None), outcome(0, True, spans=(5, 0, 0))]) is None


def test_ece_weighs_each_tenth_by_its_answers():
    pairs = [(0.95, 1), (0.95, 0), (0.15, 0), (0.15, 0)]
    assert Calibration(pairs).error == pytest.approx((2 * 0.45 + 2 * 0.15) / 4)
    assert brier(pairs) == pytest.approx((0.05**2 + 0.95**2 + 2 * 0.15**2) / 4)
    assert [each.n for each in Calibration(pairs).bins] == [2, 2]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=40))
def test_every_probability_falls_into_one_bin(pairs):
    calibration = Calibration(pairs)
    assert sum(each.n for each in calibration.bins) == len(pairs)
    assert 0 <= calibration.error <= 1


def test_percentile_is_the_nearest_rank():
    ordered = [float(number) for number in range(1, 101)]
    assert [percentile(ordered, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert percentile([3.0], 0.5) == percentile([3.0], 0.99) == 3.0


def sample(n, right):
    chance = random.Random(1)
    return [outcome(n % 2, (n % 2 == 1) == (chance.random() < right), id_=str(n)) for n in range(n)]


def test_interval_holds_the_figure_and_narrows_with_more_rows():
    few, many = sample(40, 0.8), sample(800, 0.8)
    for outcomes in (few, many):
        low, high = interval(outcomes, balanced_accuracy)
        assert low <= balanced_accuracy(outcomes) <= high
    assert (lambda s: s[1] - s[0])(interval(many, f1)) < (lambda s: s[1] - s[0])(interval(few, f1))
    assert interval(few, f1) == interval(few, f1)


def test_gain_of_a_better_run_excludes_zero_and_of_an_equal_run_is_zero():
    worse, better = sample(400, 0.6), sample(400, 0.9)
    change, low, high = gain(worse, better, balanced_accuracy)
    assert 0 < low <= change <= high
    assert gain(better, better, balanced_accuracy) == (0, 0, 0)
