"""Advise which alarms to suppress, from the decisions of reviewers. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

_FEWEST = 20  # minimum decisions for advice; at least a quarter of this number must be right, and as many wrong
_Z = 1.96  # standard deviations of a normal distribution: a two-sided 95 % interval


@dataclass(frozen=True, slots=True)
class Decision:
    """A reviewer's decision on an alarm; `score` (0–1) is the support for the claim by the evidence."""

    flag: str
    verifier: str
    score: float
    is_right: bool


@dataclass(frozen=True, slots=True)
class Advice:
    """The effect of suppressing the alarms of a flag and verifier with a score of `cut` or more.

    `right` and `wrong` are the numbers of all decided alarms, `right_lost` and `wrong_saved` those at or above the cut.
    """

    flag: str
    verifier: str
    cut: float
    right: int
    wrong: int
    right_lost: int
    wrong_saved: int

    @property
    def precision(self) -> float:
        """The share (0–1) of all alarms that were right."""
        return self.right / (self.right + self.wrong)

    @property
    def precision_then(self) -> float:
        """The share (0–1) of the alarms below the cut that were right."""
        return (self.right - self.right_lost) / (self.right + self.wrong - self.right_lost - self.wrong_saved)


def advise(decisions: Iterable[Decision]) -> tuple[Advice, ...]:
    """Return advice on each flag of each verifier for which there is any, most false alarms saved first.

    A cut is advised only if it keeps at least nine in ten of the right alarms, and if the lower bound (95 %) of the
    precision of the remaining alarms is above the precision of all.
    """
    groups: dict[tuple[str, str], list[Decision]] = defaultdict(list)
    for each in decisions:
        groups[each.flag, each.verifier].append(each)
    found = [advice for group in groups.values() if (advice := _cut(group)) is not None]
    return tuple(sorted(found, key=lambda advice: (-advice.wrong_saved, advice.flag, advice.verifier)))


def _cut(decided: list[Decision]) -> Advice | None:
    right = sum(each.is_right for each in decided)
    wrong = len(decided) - right
    if len(decided) < _FEWEST or min(right, wrong) < _FEWEST // 4:
        return None
    first = decided[0]
    best: Advice | None = None
    for cut in sorted({each.score for each in decided})[1:]:
        over = [each.is_right for each in decided if each.score >= cut]
        advice = Advice(first.flag, first.verifier, cut, right, wrong, sum(over), len(over) - sum(over))
        if advice.right_lost <= right / 10 and _is_better(advice) and (best is None or _gain(advice) > _gain(best)):
            best = advice
    return best


def _is_better(advice: Advice) -> bool:
    remaining = advice.right + advice.wrong - advice.right_lost - advice.wrong_saved
    return wilson_interval(advice.right - advice.right_lost, remaining)[0] > advice.precision


def _gain(advice: Advice) -> float:
    """Return Youden's index: the share of false alarms saved less the share of right ones lost."""
    return advice.wrong_saved / advice.wrong - advice.right_lost / advice.right


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a share (Wilson's score interval)."""
    p = successes / n
    middle, half = p + _Z**2 / (2 * n), _Z * sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    return max(0.0, (middle - half) / (1 + _Z**2 / n)), min(1.0, (middle + half) / (1 + _Z**2 / n))
