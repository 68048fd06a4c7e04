"""Drawing pairs in which missing words tell nothing of the label."""

import random

from training.balance import balanced, missing, others


def pair(claim: str, truth: int, origin: str = "written"):
    return {"claim": claim, "evidence": "The mill opened in Riga.", "truth": truth, "origin": origin, "bad": None}


def test_missing_words_are_counted_by_their_share():
    assert missing(pair("The mill opened in Riga.", 1)) == 0
    assert missing(pair("Bakers celebrated loudly.", 0)) == 5


def test_bin_with_few_of_one_label_gives_few_of_the_other():
    found = [pair(f"The mill opened in Riga {'again' * (n % 2)}.", 0) for n in range(400)]
    drawn = balanced([*found, *[pair("The mill opened.", 1)] * 8], random.Random(1))
    of_each = [sum(each["truth"] == label for each in drawn) for label in (0, 1)]
    assert of_each[1] == 8
    assert of_each[0] < 100


def test_made_pairs_are_drawn_by_their_share_and_labelled_ones_wholly():
    drawn = others([pair("x", 0, "perturbed")] * 1000 + [pair("x", 1, "quotesum_gold")] * 10, random.Random(1))
    assert 60 < sum(each["origin"] == "perturbed" for each in drawn) < 200
    assert sum(each["origin"] == "quotesum_gold" for each in drawn) == 10
