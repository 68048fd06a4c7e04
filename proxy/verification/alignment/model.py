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

_SUREST = 0.01


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


@dataclass(frozen=True, slots=True)
class Blend:
    """How what an encoder says is joined with what the model says: their log-odds, weighed and added to `bias`.

    `bars` has, by policy, the joined probability of support from which on a claim is supported. Fitted for one encoder
    by `groundwire calibrate --encoder`; without a fit both count alike, which is the mean of their log-odds.
    """

    model: float = 0.5
    encoder: float = 0.5
    bias: float = 0.0
    bars: Mapping[str, float] = field(default_factory=lambda: {"strict": 0.6, "balanced": 0.5, "lenient": 0.35})

    def probability(self, model: float, encoder: float) -> float:
        """The joined probability of support (0–1), from those of the model and of the encoder."""
        told = self.model * log_odds(model) + self.encoder * log_odds(encoder) + self.bias
        return 1 / (1 + math.exp(-told))


def log_odds(probability: float) -> float:
    """The log-odds of a probability, which counts as at least 1 % and at most 99 %: nothing said is surer than that."""
    bounded = min(1 - _SUREST, max(_SUREST, probability))
    return math.log(bounded / (1 - bounded))


@cache
def shipped() -> Model:
    """The model of the package, read once."""
    return read(json.loads(files("proxy.verification.alignment").joinpath(FILE).read_text(encoding="utf-8")))


def read(stored: Mapping[str, Any]) -> Model:
    """A model as `weights.json` stores it. KeyError, TypeError: it is none, or one of other features."""
    bars = {policy: Bar(**bar) for policy, bar in stored["bars"].items()}
    return Model(Features(**stored["weights"]), stored["bias"], bars, stored["contradicted"], stored["alarms"])


def read_blend(stored: Mapping[str, Any]) -> Blend:
    """A blend as `groundwire calibrate --encoder` stores it. KeyError, TypeError: it is none."""
    return Blend(stored["model"], stored["encoder"], stored["bias"], stored["bars"])
