"""The memory gate: whether a fact may be kept, and with how much confidence, given what its evidence tells (MG1, MG2).

Evidence has to carry belief as far as the fact's stated confidence, but no further than any estimate can reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from proxy.types import Budget, Method
from proxy.verification.information.budget import TARGETS, kl_bits

Grounding = Literal["grounded", "ungrounded", "unverified"]
Rejection = Literal["fact_not_grounded", "below_min_confidence"]

UNVERIFIED_SHARE = 0.5
"""Of a stated confidence, what a fact keeps that could not be checked."""

_LEAST_TARGET = 0.55  # above even odds: a fact that nobody stated is believed at even odds

_UNGROUNDED = ("contradicted", "unknown_citation", "no_context")


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """How strict the gate is: `min_confidence` (0–1) is the least share of the required bits for a fact to count as
    grounded, and the least confidence with which a grounded fact is kept.

    A fact that its evidence contradicts is never kept. One that its evidence does not support is kept, and marked, only
    without `reject_unsupported`.
    """

    min_confidence: float = 0.5
    reject_unsupported: bool = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.min_confidence <= 1.0:
            raise ValueError(f"min_confidence must be between 0 and 1, not {self.min_confidence}")


@dataclass(frozen=True, slots=True)
class Admission:
    """What the gate decided on a fact. `confidence` (0–1) is what it is accepted with, None when it is `rejected`.

    `share` is how much of the required bits was observed (0–1; None: not known). What is `unverified` could not be
    checked or not be decided, and is accepted with less confidence than stated.
    """

    confidence: float | None
    grounding: Grounding
    share: float | None = None
    rejected: Rejection | None = None


def target_of(stated: float, method: Method) -> float:
    """The belief that evidence must carry a fact to: its stated confidence, in the range that estimates can reach."""
    return min(max(stated, _LEAST_TARGET), TARGETS[method])


def admit(stated: float, budget: Budget, policy: GatePolicy = GatePolicy()) -> Admission:
    """The gate's decision on a fact that is stated with this confidence (0–1): min(stated, observed/required).

    A fact is grounded, or rejected, only when it is wherever the probabilities lie within what was observed: an open
    question is neither. No decision depends on a clip.
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
    """Observed over required bits: at least, most likely, and at most within what was observed; None without any."""
    if budget.status in _UNGROUNDED:
        return 0.0, 0.0, 0.0
    if budget.p1 is None:
        return None
    p1, p0, target = budget.p1, budget.p0, budget.target
    if p0 is None:
        return _share(p1.lower, 1.0, target), _share(p1.value, 1.0, target), _share(p1.upper, 0.0, target)
    return _share(p1.lower, p0.upper, target), _share(p1.value, p0.value, target), _share(p1.upper, p0.lower, target)


def _share(p1: float, p0: float, target: float) -> float:
    """How much of the way in bits from p0 to the target p1 has come (0–1); it rises with p1 and falls with p0.

    From the target on nothing is missing, also where p0 lies beyond it and nothing was required. Short of it, evidence
    that lowers belief carries nothing; with p0 beyond the target both bits are negative, and their ratio tells nothing.
    """
    if p1 >= target:
        return 1.0
    if p1 <= p0:
        return 0.0
    required = kl_bits(target, p0)
    return p1 / target if math.isinf(required) else kl_bits(p1, p0) / required
