"""Estimate a probability, with an interval, from token probabilities or from samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from groundwire.domain import Estimate, Probability, Unavailable

CONFIDENCE = 0.95
"""The confidence level of the two-sided interval of a sampled probability."""

_ROUNDING = 1e-6  # see `Probability.resolution`
_BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class Masses:
    """The probability at one token of YES, of NO, of other text, and of prefixes of YES or NO.

    The server did not return the rest of the probability mass (up to 1), which may belong to any of them.
    """

    yes: float = 0.0
    no: float = 0.0
    other: float = 0.0
    maybe_yes: float = 0.0
    maybe_no: float = 0.0


def exactly(value: float) -> Probability:
    """Return a probability known exactly, such as that of the embedded verifier."""
    return Probability(value, value, value, "verifier")


def from_masses(seen: Masses) -> Estimate:
    """Return P(YES | YES or NO), renormalised; the value is the middle of the bounds.

    For each bound, all mass that was not returned is assigned to one of the two. Unavailable if other text is likelier
    than YES and NO together, since then the model did not answer.
    """
    decided = seen.yes + seen.no + seen.maybe_yes + seen.maybe_no
    if seen.yes + seen.no <= 0.0 or seen.other > decided:
        return Unavailable("no_verdict")
    unseen = max(0.0, 1.0 - decided - seen.other)
    lower = seen.yes / (seen.yes + seen.no + seen.maybe_no + unseen)
    upper = 1.0 - seen.no / (seen.yes + seen.no + seen.maybe_yes + unseen)
    resolution = min(0.5, max(unseen + seen.maybe_yes + seen.maybe_no, _ROUNDING))
    residual = min(1.0, max(0.0, 1.0 - seen.yes - seen.no))
    upper = max(lower, upper)
    return Probability((lower + upper) / 2, lower, upper, "logprobs", residual, resolution)


def from_samples(yes: int, no: int, other: int = 0) -> Estimate:
    """Return the share of YES among YES and NO answers, with the Clopper–Pearson interval at `CONFIDENCE`.

    Unlike approximate intervals, it never covers less than its level, also near 0 and 1 where decisions are made
    (Clopper and Pearson 1934; Brown, Cai and DasGupta 2001). The resolution is half a sample. Unavailable without an
    answer, or if most answers are neither.
    """
    count = yes + no
    if count == 0:
        return Unavailable("no_verdict" if other else "no_samples")
    if other > count:
        return Unavailable("no_verdict")
    tail = (1.0 - CONFIDENCE) / 2
    lower = 0.0 if yes == 0 else _bisect(lambda p: 1.0 - _at_most(yes - 1, count, p) < tail)
    upper = 1.0 if no == 0 else _bisect(lambda p: _at_most(yes, count, p) > tail)
    return Probability(yes / count, lower, upper, "samples", other / (count + other), 0.5 / count)


def unanimous_samples(target: float) -> int:
    """Return the number of unanimous YES samples whose interval is entirely at or above `target` (0–1, exclusive)."""
    return math.ceil(math.log((1.0 - CONFIDENCE) / 2) / math.log(target) - 1e-9)


def _at_most(successes: int, count: int, p: float) -> float:
    """Return P(X ≤ successes) for a binomial variable with these parameters."""
    return math.fsum(math.comb(count, k) * p**k * (1.0 - p) ** (count - k) for k in range(successes + 1))


def _bisect(is_below: Callable[[float], bool]) -> float:
    """Return the point in `[0, 1]` at which a condition changes from true to false."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2
