"""The learned model of the statement verifier: a logistic regression with its weights in a data file of the package.

`weights.json` holds the weights and, under "card", their training data, date and accuracy. `groundwire calibrate`
writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from groundwire.verifiers.lexical.features import Features

FILE = "weights.json"


@dataclass(frozen=True, slots=True)
class Bar:
    """Thresholds on the probability of support at which the model overrules the rules.

    From `cleared` on, a claim is supported although the rules do not find it stated, unless an essential part of it is
    missing. Below `doubted`, a claim is unsupported although the rules do, unless a source states it word for word.
    Neither overrules a veto.
    """

    cleared: float
    doubted: float


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic regression that estimates the probability that a claim is supported.

    The probability assumes that half of all answers are grounded. `bars` holds the thresholds by policy. `contradicted`
    is the maximum score of a claim with a veto. `alarms` maps the name of another verifier and the label it gives to
    the probability of support of such a claim.
    """

    weights: Features
    bias: float
    bars: Mapping[str, Bar]
    contradicted: float
    alarms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def probability(self, features: Features) -> float:
        """Return the probability (0–1) that a claim with these features is supported."""
        told = self.bias + sum(weight * value for weight, value in zip(self.weights, features, strict=True))
        return 1 / (1 + math.exp(-told))


@cache
def shipped() -> Model:
    """Return the model shipped with the package, loaded once."""
    return read(json.loads(files("groundwire.verifiers.lexical").joinpath(FILE).read_text(encoding="utf-8")))


def read(stored: Mapping[str, Any]) -> Model:
    """Parse a model in the format of `weights.json`.

    Raises KeyError or TypeError if it is malformed or has other features.
    """
    bars = {policy: Bar(**bar) for policy, bar in stored["bars"].items()}
    return Model(Features(**stored["weights"]), stored["bias"], bars, stored["contradicted"], stored["alarms"])
