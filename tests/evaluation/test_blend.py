"""ST4, CF1: how much an encoder's word comes to count, from what it said of labelled answers."""

import random
from collections.abc import Callable

import pytest

from proxy.evaluation.blend import Heard, fit_blend
from proxy.evaluation.calibrate import FOLDS, Answer
from proxy.evaluation.rows import Row
from proxy.verification.alignment.model import Blend, read_blend

Chance = random.Random


def heard(draw: Callable[[Chance, int], tuple[float, float]], n: int = 400) -> list[Answer[Heard]]:
    """Answers of one or two claims, half of them ungrounded; `draw` gives the log-odds of model and encoder."""
    chance = random.Random(5)
    answers = []
    for number in range(n):
        label = number % 2
        claims = tuple(
            Heard(
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


def blend(draw: Callable[[Chance, int], tuple[float, float]]) -> Blend:
    return read_blend(fit_blend(heard(draw)))


def knowing(strength: float) -> Callable[[Chance, int], float]:
    """Log-odds that tell a bad claim from a good one as strongly as that; negative: the wrong way round."""
    return lambda chance, bad: strength * (-1 if bad else 1) + chance.gauss(0, 1)


def test_an_encoder_that_knows_more_than_words_counts_more():
    words, encoder = knowing(0.4), knowing(1.5)
    found = blend(lambda chance, bad: (words(chance, bad), encoder(chance, bad)))
    assert found.encoder > found.model > 0


def test_an_encoder_that_knows_nothing_counts_next_to_nothing():
    words, encoder = knowing(1.5), knowing(0.0)
    found = blend(lambda chance, bad: (words(chance, bad), encoder(chance, bad)))
    assert found.encoder < 0.2 * found.model


def test_an_encoder_that_is_wrong_is_not_turned_round():
    words, encoder = knowing(1.0), knowing(-1.5)
    assert blend(lambda chance, bad: (words(chance, bad), encoder(chance, bad))).encoder == 0


def test_policies_ask_more_the_stricter_they_are():
    words, encoder = knowing(0.5), knowing(1.0)
    bars = blend(lambda chance, bad: (words(chance, bad), encoder(chance, bad))).bars
    assert bars["strict"] >= bars["balanced"] >= bars["lenient"]


def test_a_card_tells_how_many_claims_were_asked_about_and_how_well_it_went():
    answers = heard(lambda chance, bad: (0.0, knowing(2.0)(chance, bad)))
    silent = [
        Answer(each.row, each.data_set, each.fold, (Heard(0, 9, None, None, 0.9, False),)) for each in answers[:100]
    ]
    card = fit_blend([*answers, *silent])["card"]
    assert 0.7 < card["asked"] < 0.95
    assert card["data"]["drawn"]["n"] == 500
    assert card["data"]["drawn"]["auroc"] > 0.8
    assert card["policies"]["balanced"]["false_alarms"] == pytest.approx(0.05, abs=0.1)
