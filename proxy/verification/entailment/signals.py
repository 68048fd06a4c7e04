"""Signals about a claim and its evidence in addition to the model's opinion: words, names and numbers."""

from __future__ import annotations

import math
from typing import NamedTuple

from proxy.types import Claim, Verdict
from proxy.verification.context.index import Context
from proxy.verification.entailment.evidence import Evidence, plain_text
from proxy.verification.words import words

_COMPUTED = ("derived", "converted", "rounded")
_SUREST = 0.002


class Signals(NamedTuple):
    """Features of a claim and its evidence, each 0–1 except the log-odds.

    `model` are the model's log-odds of support. `coverage` is the share of the claim's content words that the evidence
    has, `names` the share of its proper names that occur nowhere in the context. `derived` is 1 if all of the claim's
    numbers are stated or follow from stated ones, `absent` 1 if one of them occurs nowhere, and `wrong` 1 if a passage
    about the same subject states another value, or the value of something else. `words` are the log-odds of support by
    words alone, and `vetoed` is 1 if the closest passage denies the claim in nearly its own words.
    """

    model: float
    coverage: float = 0.0
    names: float = 0.0
    derived: float = 0.0
    absent: float = 0.0
    wrong: float = 0.0
    words: float = 0.0
    vetoed: float = 0.0


class WordMatch(NamedTuple):
    """The opinion of words alone: the probability of support, and whether the closest passage denies the claim."""

    probability: float
    is_vetoed: bool = False


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, bounded: no model is surer than 1 in 500."""
    bounded = min(1 - _SUREST, max(_SUREST, probability))
    return math.log(bounded / (1 - bounded))


def measure_signals(
    claim: Claim, evidence: Evidence, context: Context, numeric: Verdict | None, support: float, by_words: WordMatch
) -> Signals:
    """Return the signals of a claim.

    `support` is the model's probability of support, `numeric` the verdict of the numeric check, if it gave one.
    """
    found = words(plain_text(claim.text))
    content = {word.stem for word in found if word.carries_meaning}
    stated = frozenset[str]().union(*(each.stems | each.heading_stems for each in evidence.passages))
    names = {word.stem for at, word in enumerate(found) if at and word.is_capital and not word.is_number}
    new = [each for each in names if not context.nearest([each], 1)]
    return Signals(
        model=log_odds(support),
        coverage=len(content & stated) / len(content) if content else 1.0,
        names=len(new) / len(names) if names else 0.0,
        derived=float(numeric is not None and numeric.label == "supported" and numeric.method in _COMPUTED),
        absent=float(numeric is not None and numeric.method == "absent"),
        wrong=float(numeric is not None and numeric.label == "contradicted"),
        words=log_odds(by_words.probability),
        vetoed=float(by_words.is_vetoed),
    )
