"""The strictness of verification, as frozen values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal


def _require(holds: bool, name: str, expected: str, value: object) -> None:
    """Raise ValueError when a value is out of range."""
    if not holds:
        raise ValueError(f"{name} must be {expected}, not {value}")


def _require_shares(of: object, section: str, *names: str) -> None:
    """Raise ValueError when any of these attributes is outside 0 to 1."""
    for name in names:
        value = getattr(of, name)
        _require(0.0 <= value <= 1.0, f"{section}.{name}", "between 0 and 1", value)


@dataclass(frozen=True, slots=True)
class NumericPolicy:
    """The numbers to check and their tolerance.

    `tolerance` None means the precision as written; else it is a share of the value by kind, and days for dates.
    `documents` and `facts` select the sources to check against; without `auto_flag` no number raises a flag.
    """

    currency: bool = True
    percentage: bool = True
    ratio: bool = True
    date: bool = True
    documents: bool = True
    facts: bool = True
    auto_flag: bool = True
    tolerance: tuple[tuple[str, float], ...] | None = None
    confidence_penalty: float = 0.2
    max_source_checks: int = 10
    timeout_s: float = 0.1

    def __post_init__(self) -> None:
        _require_shares(self, "numeric", "confidence_penalty")
        _require(self.max_source_checks >= 1, "numeric.max_source_checks", "at least 1", self.max_source_checks)
        _require(self.timeout_s >= 0, "numeric.timeout_s", "at least 0", self.timeout_s)
        for kind, value in self.tolerance or ():
            is_fit = value >= 0 if kind == "date" else 0.0 <= value <= 1.0
            _require(is_fit, f"numeric.tolerance.{kind}", "at least 0" if kind == "date" else "between 0 and 1", value)


@dataclass(frozen=True, slots=True)
class QuotePolicy:
    """The matching of quotations; `fuzzy_threshold` is a share (0.5–1.0) and applies only if `fuzzy` is set."""

    enabled: bool = True
    fuzzy: bool = False
    fuzzy_threshold: float = 0.85
    fail_on_all_rejected: bool = False

    def __post_init__(self) -> None:
        value = self.fuzzy_threshold
        _require(0.5 <= value <= 1.0, "quotes.fuzzy_threshold", "between 0.5 and 1", value)


@dataclass(frozen=True, slots=True)
class ModelPolicy:
    """The claims whose information budget a model estimates, and the backend to use ("" for none).

    `probability_min` and `probability_max` bound the probability of support (0–1) that the embedded verifier assigns to
    such a claim. A gap over `flag_threshold_bits` raises the flag `budget_gap`. `identity` distinguishes backends of
    one kind.
    """

    backend: str = ""
    identity: str = ""
    probability_min: float = 0.2
    probability_max: float = 0.8
    flag_threshold_bits: float = 0.0

    def __post_init__(self) -> None:
        _require_shares(self, "model", "probability_min", "probability_max")
        bits = self.flag_threshold_bits
        _require(bits >= 0, "model.flag_threshold_bits", "at least 0", bits)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of warnings (0–1 each): minimum grounding, consistency and confidence, and maximum risk."""

    grounding: float = 0.7
    consistency: float = 0.8
    confidence: float = 0.6
    risk: float = 0.3

    def __post_init__(self) -> None:
        _require_shares(self, "thresholds", "grounding", "consistency", "confidence", "risk")


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds and tolerances: everything that a verdict depends on apart from claim and evidence.

    `judge` identifies the entailment model and its settings ("" for none).

    This class and its parts raise ValueError when a value is outside the range that the settings allow.
    """

    name: Literal["strict", "balanced", "lenient"] = "balanced"
    verifiers: tuple[str, ...] = ("quote", "numeric", "statement")
    max_claims: int = 500
    verify_hedged: bool = False
    numeric: NumericPolicy = field(default_factory=NumericPolicy)
    quotes: QuotePolicy = field(default_factory=QuotePolicy)
    judge: str = ""
    model: ModelPolicy = field(default_factory=ModelPolicy)
    has_confidence: bool = True
    confidence_weights: tuple[tuple[str, float], ...] = (
        ("retrieval", 0.3),
        ("source", 0.25),
        ("extraction", 0.25),
        ("consistency", 0.2),
    )
    source_weights: tuple[tuple[str, float], ...] = (
        ("tool", 1.0),
        ("document", 1.0),
        ("source", 1.0),
        ("system", 0.9),
        ("user", 0.7),
    )
    thresholds: Thresholds = Thresholds()

    def __post_init__(self) -> None:
        _require(self.max_claims >= 1, "max_claims", "at least 1", self.max_claims)
        for part, weight in self.confidence_weights:
            _require(0.0 <= weight < math.inf, f"confidence_weights.{part}", "at least 0", weight)
        for kind, weight in self.source_weights:
            _require(0.0 <= weight <= 1.0, f"source_weights.{kind}", "between 0 and 1", weight)
