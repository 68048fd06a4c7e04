"""Combine a model's opinion with other signals, by a logistic regression that `groundwire calibrate` fits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groundwire.verifiers.entailment.model import Entailment
from groundwire.verifiers.entailment.signals import Signals

_MODEL_ALONE = Signals(model=1.0)
_BARS = {"strict": 0.6, "balanced": 0.5, "lenient": 0.35}


@dataclass(frozen=True, slots=True)
class Combination:
    """Weights of a logistic regression over `Signals`, and its decision thresholds.

    `bars` holds, by policy, the minimum probability at which a claim counts as supported. A claim that is not supported
    is labelled `contradicted` if contradiction makes up at least the share `contradicted` of the probability against
    it. By default the model's probability is used alone, within the bounds of `log_odds`.
    """

    weights: Signals = _MODEL_ALONE
    bias: float = 0.0
    bars: Mapping[str, float] = field(default_factory=lambda: dict(_BARS))
    contradicted: float = 0.5

    def probability(self, signals: Signals) -> float:
        """Return the probability (0–1) that the claim is supported."""
        total = self.bias + sum(weight * value for weight, value in zip(self.weights, signals, strict=True))
        return 1 / (1 + math.exp(-total))

    def is_contradicted(self, found: Entailment) -> bool:
        """Return whether a claim that is not supported is contradicted rather than not mentioned."""
        against = 1.0 - found.supported
        return against > 0 and found.contradicted / against >= self.contradicted


def read_combination(text: str) -> Combination:
    """Parse a combination in the JSON that `groundwire calibrate` writes. Raises ValueError if it is malformed."""
    try:
        stored: Mapping[str, Any] = json.loads(text)
        weights = Signals(**stored["weights"])
        return Combination(weights, stored["bias"], {**_BARS, **stored["bars"]}, stored["contradicted"])
    except (KeyError, TypeError) as error:
        raise ValueError("it holds no weights of a combination") from error
