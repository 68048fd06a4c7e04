"""The learned part of the statement verifier: a logistic regression whose weights are a data file of the package.

`weights.json` holds the weights and, under "card", what they were fitted on, when, and how well they do.
`groundwire calibrate` writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from proxy.verification.alignment.features import Features

FILE = "weights.json"


@dataclass(frozen=True, slots=True)
class Bar:
    """How sure the model must be to overrule the rules, as probabilities of support.

    From `cleared` on, a claim is supported whatever the rules say; below `doubted` it is not.
    """

    cleared: float
    doubted: float


@dataclass(frozen=True, slots=True)
class Model:
    """`probability` is that of a claim's being supported, where half of the answers are grounded.

    `bars` has one for each policy; `contradicted` is the probability of a claim against which a veto stands, `alarms`
    that of a claim about which another verifier raises an alarm, by its name and the label it gives.
    """

    weights: Features
    bias: float
    bars: Mapping[str, Bar]
    contradicted: float
    alarms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def probability(self, features: Features) -> float:
        """How likely a claim with these features is supported (0–1)."""
        told = self.bias + sum(weight * value for weight, value in zip(self.weights, features, strict=True))
        return 1 / (1 + math.exp(-told))


@cache
def shipped() -> Model:
    """The model of the package, read once."""
    return read(json.loads(files("proxy.verification.alignment").joinpath(FILE).read_text(encoding="utf-8")))


def read(stored: Mapping[str, Any]) -> Model:
    """A model as `weights.json` stores it. KeyError, TypeError: it is none, or one of other features."""
    bars = {policy: Bar(**bar) for policy, bar in stored["bars"].items()}
    return Model(Features(**stored["weights"]), stored["bias"], bars, stored["contradicted"], stored["alarms"])
