"""`groundwire calibrate` fits the right weights, and reports their quality."""

import json
import math
import random
from importlib.resources import files
from pathlib import Path

import pytest

from groundwire.errors import GroundwireError
from groundwire.evaluation.calibrate import _WORDS_ALONE, calibrate, judge_row
from groundwire.evaluation.logistic import Example, fit, sigmoid
from groundwire.evaluation.rows import SAMPLE, Row, read_rows
from groundwire.verifiers.signals import read_combination, words_alone


def drawn(weights, bias, n=3000):
    chance = random.Random(2)
    for _ in range(n):
        features = tuple(chance.gauss(0, 1) for _ in weights)
        odds = bias + sum(weight * value for weight, value in zip(weights, features, strict=True))
        yield Example(features, float(chance.random() < sigmoid(odds)), 1.0)


def test_fit_finds_the_line_that_the_truth_was_drawn_from():
    line = fit(list(drawn((1.5, -1.0), 0.5)), (0, 0), ridge=1e-6)
    assert line.weights == pytest.approx((1.5, -1.0), abs=0.2)
    assert line.bias == pytest.approx(0.5, abs=0.15)


def test_feature_that_points_against_its_sign_gets_no_weight():
    line = fit(list(drawn((1.5, -1.0), 0.0)), (1, 1))
    assert line.weights[0] > 0.5
    assert line.weights[1] == 0


def test_fitted_probabilities_are_right_on_average():
    examples = list(drawn((2.0, 0.3), -0.7))
    line = fit(examples, (1, 1))
    assert sum(sigmoid(line(each.features)) - each.truth for each in examples) / len(examples) == pytest.approx(
        0, abs=1e-3
    )


def test_weight_of_an_example_counts_as_so_many_examples():
    examples = list(drawn((1.0,), 0.0, 200))
    doubled = fit([*examples, *examples[:50]], (0,))
    weighed = fit([each._replace(weight=2.0 if n < 50 else 1.0) for n, each in enumerate(examples)], (0,))
    assert weighed.weights == pytest.approx(doubled.weights, rel=1e-4)


@pytest.mark.parametrize("odds", [-800.0, -1.0, 0.0, 1.0, 800.0])
def test_sigmoid_is_a_probability_for_any_odds(odds):
    assert 0 <= sigmoid(odds) <= 1
    assert sigmoid(odds) + sigmoid(-odds) == pytest.approx(1)


def judged(row: Row):
    return judge_row(row, _WORDS_ALONE)


CONTEXT = ("The mill opened in 1904. Its owner was Ada Holt.",)


def test_marked_spans_identify_the_unsupported_claim():
    answer = "The mill opened in 1904. Its owner was Bertha Stone."
    seen = judged(Row("a", CONTEXT, answer, 1, ((25, len(answer)),)))
    assert [claim.truth for claim in seen] == [1, 0]


def test_ungrounded_answer_without_spans_leaves_its_claims_open():
    seen = judged(Row("a", CONTEXT, "The mill opened in 1904. It burned down.", 1))
    assert [claim.truth for claim in seen] == [None, None]


def test_wrong_number_is_an_alarm_that_no_weight_outvotes():
    (claim,) = judged(Row("a", CONTEXT, "The mill opened in 1907.", 1))
    assert claim.alarm
    assert claim.features is None


def test_refit_weights_can_be_read_and_their_card_has_the_figures(tmp_path: Path, capsys):
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()
    copies = [json.loads(line) | {"id": f"{n}-{k}"} for n, line in enumerate(lines) for k in range(4)]
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in copies))
    calibrate(tmp_path, None, tmp_path / "weights.json")
    stored = json.loads((tmp_path / "weights.json").read_text())
    fitted = read_combination(json.dumps(stored))
    assert set(fitted.bars) == {"strict", "balanced", "lenient"}
    assert stored["card"]["data"]["mine"]["n"] == len(copies)
    assert stored["card"]["data"]["mine"]["auroc"] > 0.7
    assert json.loads(capsys.readouterr().out) == stored["card"]


def test_nothing_to_fit_on_is_an_error(tmp_path: Path):
    with pytest.raises(GroundwireError):
        calibrate(tmp_path, None, None)


def test_shipped_card_names_data_licences_and_the_rates_of_each_policy():
    card = json.loads(files("groundwire.verifiers").joinpath("weights.json").read_text())["card"]
    assert {"date", "split", "ece"} <= card.keys()
    assert all(each["licence"] for each in card["data"].values())
    assert set(card["policies"]) == {"strict", "balanced", "lenient"}
    assert card["policies"]["strict"]["misses"] <= card["policies"]["balanced"]["misses"]
    assert card["policies"]["lenient"]["false_alarms"] <= card["policies"]["balanced"]["false_alarms"]
    assert not math.isnan(card["ece"])


def test_sample_gives_claims_to_learn_from():
    rows, _ = read_rows(SAMPLE.read_text(encoding="utf-8").splitlines())
    seen = [claim for row in rows for claim in judged(row)]
    assert {claim.truth for claim in seen} == {0, 1}


def test_shipped_weights_need_no_model():
    assert words_alone().weights.model == 0
