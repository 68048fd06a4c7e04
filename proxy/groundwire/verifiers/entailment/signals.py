"""Signals about a claim and its evidence in addition to the model's opinion: words, names and numbers."""

from __future__ import annotations

import math
from typing import NamedTuple

from groundwire.domain import Claim, Verdict
from groundwire.evidence.index import Context
from groundwire.text.words import words
from groundwire.verifiers.entailment.evidence import Evidence, plain_text
from groundwire.verifiers.numbers.certainty import is_stated_together

_COMPUTED = ("derived", "converted", "rounded")
_SUREST = 0.002


class Signals(NamedTuple):
    """Features of a claim and its evidence, each 0–1 except the log-odds.

    `model` is the model's log-odds of support. `coverage` is the share of the claim's content words in the evidence,
    `names` the share of its proper names that occur nowhere in the context. `words` is the log-odds of support by the
    lexical model, `vetoed` is 1 if a passage with nearly the same words contradicts the claim.

    `derived`, `absent` and `wrong` are flags from the numeric verdict, whose method is that of the claim's least
    certain number. `derived` is 1 if it is supported and that number was derived, converted or rounded, or is stated in
    a passage with all other words of the claim; `absent` if no passage about the claim has that number, `wrong` if the
    sources contradict it.
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
    """The result of the lexical model: the probability of support, and whether a veto contradicts the claim."""

    probability: float
    is_vetoed: bool = False


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, which is clipped to 0.002–0.998."""
    bounded = min(1 - _SUREST, max(_SUREST, probability))
    return math.log(bounded / (1 - bounded))


def measure_signals(
    claim: Claim, evidence: Evidence, context: Context, numeric: Verdict | None, support: float, by_words: WordMatch
) -> Signals:
    """Return the signals of a claim.

    `support` is the model's probability of support, `numeric` the verdict of the numeric verifier, if it gave one.
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
        derived=float(
            numeric is not None
            and numeric.label == "supported"
            and (numeric.method in _COMPUTED or is_stated_together(claim, numeric, context))
        ),
        absent=float(numeric is not None and numeric.method == "absent"),
        wrong=float(numeric is not None and numeric.label == "contradicted"),
        words=log_odds(by_words.probability),
        vetoed=float(by_words.is_vetoed),
    )
