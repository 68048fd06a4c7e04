"""Logistic regression with sign constraints, for a dozen features and about ten thousand rows.

The constraints make it transfer to other texts: a feature with the wrong sign in one data set gets a weight of zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_RIDGE = 0.01
_STEPS, _SWEEPS, _ENOUGH = 20, 200, 1e-6
_SPREAD = 1e-3

Vector = NDArray[np.float64]


class Example(NamedTuple):
    """The features of a row, its truth (0–1) and its weight in the loss."""

    features: tuple[float, ...]
    truth: float
    weight: float


@dataclass(frozen=True, slots=True)
class Line:
    """The log-odds of truth as a linear function of features."""

    weights: tuple[float, ...]
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
    features, truths, shares = (np.array(column, dtype=float) for column in zip(*examples, strict=True))
    shares /= shares.sum()
    means = shares @ features
    spreads = np.sqrt(shares @ (features - means) ** 2) + _SPREAD
    rows = np.column_stack(((features - means) / spreads, np.ones(len(examples))))
    bounds, penalties = np.array([*signs, 0.0]), np.array([ridge] * len(signs) + [0.0])
    found = np.zeros(len(bounds))
    for _ in range(_STEPS):
        stated = (1 + np.tanh(rows @ found / 2)) / 2
        slope = penalties * found + (shares * (stated - truths)) @ rows
        curves = np.maximum(shares * stated * (1 - stated), 1e-12)
        step = _minimise(slope, (rows.T * curves) @ rows + np.diag(penalties), found, bounds)
        found += step
        if np.abs(step).max() < _ENOUGH:
            break
    weights = found[:-1] / spreads
    return Line(tuple(weights.tolist()), float(found[-1] - weights @ means))


def sigmoid(odds: float) -> float:
    """Convert log-odds to a probability."""
    return 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))


def _minimise(slope: Vector, bend: Vector, found: Vector, bounds: Vector) -> Vector:
    """Return the step that minimises the quadratic model while all weights satisfy their signs."""
    step = np.zeros(len(slope))
    for _ in range(_SWEEPS):
        before = step.copy()
        for place, row in enumerate(bend):
            step[place] -= (slope[place] + row @ step) / row[place]
            if bounds[place] * (found[place] + step[place]) < 0:
                step[place] = -found[place]
        if np.abs(step - before).max() < _ENOUGH / 10:
            break
    return step
