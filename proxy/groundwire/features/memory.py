"""Decide whether to store a fact in the memory, and with which confidence, given its evidence.

The evidence must reach the stated confidence of the fact, but at most the highest value that an estimate can reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from groundwire.domain import Budget
from groundwire.scoring.budget import kl_bits

Grounding = Literal["grounded", "ungrounded", "unverified"]
Rejection = Literal["fact_not_grounded", "below_min_confidence"]

UNVERIFIED_SHARE = 0.5
"""The factor on the stated confidence of a fact that could not be checked."""

_UNGROUNDED = ("contradicted", "unknown_citation", "no_context")


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """The strictness of the memory gate.

    `min_confidence` (0–1) is the minimum share of the required bits for a fact to be grounded, and the minimum stated
    confidence for a grounded fact to be stored. A contradicted fact is never stored. An unsupported one is stored, and
    marked, only without `reject_unsupported`.
    """

    min_confidence: float = 0.5
    reject_unsupported: bool = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.min_confidence <= 1.0:
            raise ValueError(f"min_confidence must be between 0 and 1, not {self.min_confidence}")


@dataclass(frozen=True, slots=True)
class Admission:
    """The decision of the gate on a fact. `confidence` (0–1) is that of the accepted fact, None when it is `rejected`.

    `share` is the share of the required bits that was observed (0–1; None: unknown). An `unverified` fact could not be
    checked or decided, and is accepted with less confidence than stated.
    """

    confidence: float | None
    grounding: Grounding
    share: float | None = None
    rejected: Rejection | None = None


def admit(stated: float, budget: Budget, policy: GatePolicy = GatePolicy()) -> Admission:
    """Decide on a fact with this stated confidence (0–1); the accepted confidence is min(stated, observed/required).

    A fact is grounded, or ungrounded, only if it is so for all probabilities in the observed intervals; otherwise it is
    unverified. No decision depends on clipping.
    """
    known = _shares(budget)
    if known is None:
        return Admission(stated * UNVERIFIED_SHARE, "unverified")
    least, observed, most = known
    if least >= policy.min_confidence:
        if stated < policy.min_confidence:
            return Admission(None, "grounded", observed, "below_min_confidence")
        return Admission(min(stated, observed), "grounded", observed)
    if most >= policy.min_confidence:
        return Admission(min(stated * UNVERIFIED_SHARE, observed if budget.p0 else most), "unverified", observed)
    if policy.reject_unsupported or budget.status == "contradicted":
        return Admission(None, "ungrounded", observed, "fact_not_grounded")
    return Admission(min(stated, observed), "ungrounded", observed)


def _shares(budget: Budget) -> tuple[float, float, float] | None:
    """Return the minimum, likely and maximum ratio of observed to required bits; None without an estimate."""
    if budget.status in _UNGROUNDED:
        return 0.0, 0.0, 0.0
    if budget.p1 is None:
        return None
    p1, p0, target = budget.p1, budget.p0, budget.target
    if p0 is None:
        return _share(p1.lower, 1.0, target), _share(p1.value, 1.0, target), _share(p1.upper, 0.0, target)
    return _share(p1.lower, p0.upper, target), _share(p1.value, p0.value, target), _share(p1.upper, p0.lower, target)


def _share(p1: float, p0: float, target: float) -> float:
    """Return the share (0–1) of the way from p0 to the target, in bits, that p1 covers.

    It rises with p1 and falls with p0. At or above the target it is 1, also if p0 exceeds the target. Below it,
    evidence that lowers belief gives 0; with p0 above the target both bits are negative, and their ratio is
    meaningless.
    """
    if p1 >= target:
        return 1.0
    if p1 <= p0:
        return 0.0
    required = kl_bits(target, p0)
    return p1 / target if math.isinf(required) else kl_bits(p1, p0) / required
