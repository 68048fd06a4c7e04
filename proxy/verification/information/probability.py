"""Derive a probability from token probabilities or from samples, as an interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from proxy.types import Estimate, Probability, Unavailable

CONFIDENCE = 0.95
"""The confidence of the interval of a sampled probability, two-sided."""

_ROUNDING = 1e-6  # see `Probability.resolution`
_BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class Masses:
    """Probability at one token: on YES, on NO, on other text, and on prefixes of YES or NO.

    The remainder to 1 was not returned, and may be any of them.
    """

    yes: float = 0.0
    no: float = 0.0
    other: float = 0.0
    maybe_yes: float = 0.0
    maybe_no: float = 0.0


def exactly(value: float) -> Probability:
    """A probability that is known, such as that of the embedded verifier."""
    return Probability(value, value, value, "verifier")


def from_masses(seen: Masses) -> Estimate:
    """P(YES | YES or NO), renormalised; the value is the middle of the bounds.

    The bounds give all that was not shown to the one and to the other. Unavailable when something else is likelier
    than YES and NO together: then the model did not answer.
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

    That interval is exact: it never covers less than it promises, also near 0 and 1 where decisions are made (Clopper
    and Pearson 1934; Brown, Cai and DasGupta 2001 on why the others do). The resolution is half a sample. Unavailable
    without an answer, or when most answers are neither.
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
    """Return the number of unanimous YES samples for which the whole interval is at or above `target` (0–1,
    exclusive).
    """
    return math.ceil(math.log((1.0 - CONFIDENCE) / 2) / math.log(target) - 1e-9)


def _at_most(successes: int, count: int, p: float) -> float:
    """P(X <= successes) of a binomial variable with these parameters."""
    return math.fsum(math.comb(count, k) * p**k * (1.0 - p) ** (count - k) for k in range(successes + 1))


def _bisect(is_below: Callable[[float], bool]) -> float:
    """Return the point in `[0, 1]` at which a condition changes from true to false."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2
