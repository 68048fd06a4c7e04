"""Logistic regression with sign constraints, in plain Python, for a dozen features and about ten thousand rows.

The constraints make it transfer to other texts: a feature with the wrong sign in one data set gets a weight of zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_RIDGE = 0.01
_STEPS, _SWEEPS, _ENOUGH = 20, 200, 1e-6
_SPREAD = 1e-3

Vector = tuple[float, ...]


class Example(NamedTuple):
    """The features of a row, its truth (0–1) and its weight in the loss."""

    features: Vector
    truth: float
    weight: float


@dataclass(frozen=True, slots=True)
class Line:
    """The log-odds of truth as a linear function of features."""

    weights: Vector
    bias: float

    def __call__(self, features: Sequence[float]) -> float:
        """Return the log-odds of a row of features."""
        return self.bias + sum(weight * value for weight, value in zip(self.weights, features, strict=True))


def fit(examples: Sequence[Example], signs: Sequence[float], ridge: float = _RIDGE) -> Line:
    """Minimise the weighted mean of the negative log-likelihood plus `ridge`/2 times the sum of squared weights.

    The penalty applies to standardised features and not to the bias. A positive sign excludes negative weights, a
    negative sign positive ones; 0 excludes none. Newton's method, with coordinate descent for the constrained quadratic
    model of each step.
    """
    total = sum(example.weight for example in examples)
    means, spreads = _moments(examples, total)
    rows = [
        ((*((v - m) / s for v, m, s in zip(e.features, means, spreads, strict=True)), 1.0), e.truth, e.weight / total)
        for e in examples
    ]
    bounds = [*signs, 0.0]
    penalties = [ridge] * len(signs) + [0.0]
    found = [0.0] * len(bounds)
    for _ in range(_STEPS):
        step = _step(rows, found, bounds, penalties)
        found = [value + change for value, change in zip(found, step, strict=True)]
        if max(map(abs, step)) < _ENOUGH:
            break
    weights = tuple(value / spread for value, spread in zip(found, spreads, strict=False))
    return Line(weights, found[-1] - sum(weight * mean for weight, mean in zip(weights, means, strict=True)))


def sigmoid(odds: float) -> float:
    """Convert log-odds to a probability."""
    return 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))


def _moments(examples: Sequence[Example], total: float) -> tuple[list[float], list[float]]:
    places = range(len(examples[0].features))
    means = [sum(e.weight * e.features[p] for e in examples) / total for p in places]
    variances = [sum(e.weight * (e.features[p] - means[p]) ** 2 for e in examples) / total for p in places]
    return means, [math.sqrt(variance) + _SPREAD for variance in variances]


def _step(
    rows: Sequence[tuple[Vector, float, float]],
    found: Sequence[float],
    bounds: Sequence[float],
    penalties: Sequence[float],
) -> list[float]:
    places = range(len(found))
    slope = [penalty * value for penalty, value in zip(penalties, found, strict=True)]
    bend = [[penalties[p] * (p == q) for q in places] for p in places]
    for features, truth, weight in rows:
        stated = sigmoid(sum(value * feature for value, feature in zip(found, features, strict=True)))
        error, curve = weight * (stated - truth), max(weight * stated * (1 - stated), 1e-12)
        for p in places:
            slope[p] += error * features[p]
            row, scaled = bend[p], curve * features[p]
            for q in range(p + 1):
                row[q] += scaled * features[q]
    for p in places:
        for q in range(p):
            bend[q][p] = bend[p][q]
    return _minimise(slope, bend, found, bounds)


def _minimise(
    slope: Sequence[float], bend: Sequence[Sequence[float]], found: Sequence[float], bounds: Sequence[float]
) -> list[float]:
    """Return the step that minimises the quadratic model while all weights satisfy their signs."""
    step = [0.0] * len(slope)
    for _ in range(_SWEEPS):
        moved = 0.0
        for p, row in enumerate(bend):
            value = step[p] - (slope[p] + sum(h * s for h, s in zip(row, step, strict=True))) / row[p]
            if bounds[p] * (found[p] + value) < 0:
                value = -found[p]
            moved, step[p] = max(moved, abs(value - step[p])), value
        if moved < _ENOUGH / 10:
            break
    return step
