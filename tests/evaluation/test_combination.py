"""Weights of the signals of a claim, fitted on labelled answers."""

import json
import random
from collections.abc import Callable

import pytest

from groundwire.evaluation.calibrate import FOLDS, Answer, JudgedClaim, fit_combination
from groundwire.evaluation.rows import Row
from groundwire.verifiers.signals import Combination, Signals, read_combination

Chance = random.Random
Draw = Callable[[Chance, int], Signals]


def drawn(draw: Draw, n: int = 400) -> list[Answer]:
    """Answers of one or two claims, half of them ungrounded; `draw` gives the signals of a claim."""
    chance = random.Random(5)
    answers = []
    for number in range(n):
        label = number % 2
        claims = tuple(
            JudgedClaim(
                place * 10,
                place * 10 + 9,
                draw(chance, int(place == 0 and label)),
                1 - int(place == 0 and label),
                1.0,
                False,
            )
            for place in range(1 + chance.randrange(2))
        )
        row = Row(str(number), ("context",), "x" * 20, label, ((0, 9),) if label else None)
        answers.append(Answer(row, "drawn", number % FOLDS, claims))
    return answers


def fitted(draw: Draw) -> Combination:
    return read_combination(json.dumps(fit_combination(drawn(draw))))


def knowing(strength: float) -> Callable[[Chance, int], float]:
    """Values that separate bad claims from good ones with this strength; negative: the wrong way round."""
    return lambda chance, bad: strength * (-1 if bad else 1) + chance.gauss(0, 1)


def test_a_signal_that_knows_more_counts_more():
    weak, strong = knowing(0.4), knowing(1.5)
    found = fitted(lambda chance, bad: Signals(strong(chance, bad), weak(chance, bad)))
    assert found.weights.model > found.weights.coverage > 0


def test_a_signal_that_knows_nothing_counts_next_to_nothing():
    nothing, model = knowing(0.0), knowing(1.5)
    found = fitted(lambda chance, bad: Signals(model(chance, bad), nothing(chance, bad)))
    assert found.weights.coverage < 0.2 * found.weights.model


def test_a_signal_that_is_wrong_is_not_turned_round():
    model = knowing(-1.5)
    assert fitted(lambda chance, bad: Signals(model(chance, bad))).weights.model == 0


def test_policies_ask_more_the_stricter_they_are():
    model = knowing(1.0)
    bars = fitted(lambda chance, bad: Signals(model(chance, bad))).bars
    assert bars["strict"] >= bars["balanced"] >= bars["lenient"]


def test_a_card_has_the_share_of_claims_that_no_exact_check_decided():
    model = knowing(2.0)
    answers = drawn(lambda chance, bad: Signals(model(chance, bad)))
    silent = [
        Answer(each.row, each.data_set, each.fold, (JudgedClaim(0, 9, None, None, 0.9, False),))
        for each in answers[:100]
    ]
    card = fit_combination([*answers, *silent])["card"]
    assert 0.7 < card["open"] < 0.95
    assert card["data"]["drawn"]["n"] == 500
    assert card["data"]["drawn"]["auroc"] > 0.8
    assert card["policies"]["balanced"]["false_alarms"] == pytest.approx(0.05, abs=0.1)
