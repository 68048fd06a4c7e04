"""Compute the budget of a claim in bits, and the status that follows from two probabilities.

Bits are signed, so evidence that lowers belief counts against the claim. Statuses and flags are decided on the
intervals of the probabilities; only the reported bits are clipped, so no decision depends on the clipping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from groundwire.claims.stance import PLAIN
from groundwire.domain import Budget, BudgetStatus, Claim, Estimate, Label, Method, Probability, Unavailable

TARGET = 0.95
"""The belief that a claim must reach to count as entailed; its negation is entailed at `1 - TARGET`."""

TARGETS: dict[Method, float] = {"logprobs": TARGET, "service": TARGET, "samples": 0.7, "verifier": 0.55}
"""The highest target for each way to obtain a probability: that of a claim without a hedge.

With samples, the target of logprobs would need 72 unanimous ones. The embedded verifier has calibrated scores between
0.2 and 0.85, and labels a claim supported from even odds on.
"""

_LEAST_TARGET = 0.55  # above even odds, the belief in a fact without any evidence

LABELS: dict[BudgetStatus, Label] = {
    "supported": "supported",
    "decorative_citation": "supported",
    "contradicted": "contradicted",
    "not_entailed": "unsupported",
    "prior_leak": "not_checked",
    "ambiguous": "not_checked",
    "unknown_citation": "not_checked",
    "no_context": "not_checked",
    "unavailable": "not_checked",
}
"""The label for each status: an undecided claim is `not_checked`, not an alarm."""

_Band = Literal["low", "middle", "high"]
_BANDS: tuple[_Band, ...] = ("low", "middle", "high")

_STATUS: dict[_Band, dict[_Band, BudgetStatus]] = {
    "low": {"low": "not_entailed", "middle": "contradicted", "high": "contradicted"},
    "middle": {"low": "not_entailed", "middle": "not_entailed", "high": "not_entailed"},
    "high": {"low": "supported", "middle": "supported", "high": "prior_leak"},
}
"""The status by the band of p1, then by that of p0.

A contradiction is support of the negation, so the corners mirror each other. A claim that is believed or disbelieved
without the evidence is neither supported nor contradicted by it.
"""

_REASONS: dict[BudgetStatus, str] = {
    "supported": "The cited evidence makes it believed.",
    "contradicted": "The cited evidence makes it disbelieved.",
    "not_entailed": "It is not believed with the cited evidence.",
    "prior_leak": "It is believed without the cited evidence too.",
    "decorative_citation": "It is believed because of the evidence, but not because of every citation.",
    "ambiguous": "The estimates do not settle its status.",
    "unknown_citation": "The source that it cites is not in the context.",
    "no_context": "The request has no source to check it against.",
    "unavailable": "No probability could be estimated for it.",
}


def target_of(stated: float, method: Method) -> float:
    """Return the belief that evidence must reach for a fact: its stated confidence, limited to the reachable range."""
    return min(max(stated, _LEAST_TARGET), TARGETS[method])


def claim_target(claim: Claim, method: Method) -> float:
    """Return the belief that evidence must reach for a claim of an answer: its stated confidence, as in `target_of`.

    From `PLAIN` on, the confidence of a statement without a hedge, it is the target of the method.
    """
    stated = claim.stated_confidence
    return TARGETS[method] if stated >= PLAIN else target_of(stated, method)


@dataclass(frozen=True, slots=True)
class Ablation:
    """The belief in a claim `without` one of its citations, and with it `alone` of all of them.

    `alone` matters, and need be requested, only if `without` is in the same band as the belief with all citations.
    """

    without: Estimate
    alone: Estimate | None = None


def kl_bits(p: float, q: float) -> float:
    """Return KL(Ber(p)‖Ber(q)) in bits: p·log2(p/q) + (1−p)·log2((1−p)/(1−q)); infinite if q excludes p."""
    return max(0.0, _term(p, q) + _term(1.0 - p, 1.0 - q))


def _term(p: float, q: float) -> float:
    if p <= 0.0:
        return 0.0
    return math.inf if q <= 0.0 else p * (math.log2(p) - math.log2(q))


def signed_bits(p: float, q: float) -> float:
    """Return the change of belief from `q` to `p` in bits: `kl_bits` with the sign of `p - q`. Monotone in `p`."""
    return math.copysign(kl_bits(p, q), p - q) if p != q else 0.0


def gap_bits(p0: float, p1: float, target: float) -> float:
    """Return the bits missing to `target`: required less observed bits. Positive exactly if p1 < target."""
    if p1 == target:
        return 0.0
    if p0 in (0.0, 1.0):
        return math.copysign(math.inf, target - p1)
    return signed_bits(target, p0) - signed_bits(p1, p0)


def gap_bounds(p0: Probability | None, p1: Probability, target: float) -> tuple[float, float]:
    """Return the minimum and maximum of missing bits anywhere in the intervals; an unknown p0 may be any.

    The gap falls as p1 rises. As a function of p0 it has one turning point, the mean of p1 and the target.
    """
    ends = (0.0, 1.0) if p0 is None else (p0.lower, p0.upper)

    def of(p1: float) -> Sequence[float]:
        turn = min(max((p1 + target) / 2, ends[0]), ends[1])
        return [gap_bits(place, p1, target) for place in (*ends, turn)]

    return min(of(p1.upper)), max(of(p1.lower))


def unasked(*, has_context: bool, unknown: Sequence[str] = ()) -> Budget | None:
    """Return the budget of a claim that needs no model query, else None; `unknown` are its citations of no source."""
    if not has_context:
        return _decided("no_context", TARGET)
    return _decided("unknown_citation", TARGET) if unknown else None


def needs_p0(p1: Estimate, target: float = TARGET, threshold_bits: float = 0.0) -> bool:
    """Return whether p0 could decide the status, or whether the gap exceeds the threshold, given p1."""
    if isinstance(p1, Unavailable):
        return False
    bands = _bands(p1, target)
    could_settle = any(len(_possible(bands, (band,))) == 1 for band in _BANDS)
    low, high = gap_bounds(None, p1, target)
    return (could_settle and len(_possible(bands, _BANDS)) > 1) or (p1.upper < target and low <= threshold_bits < high)


def measure(
    p1: Estimate, p0: Estimate | None = None, ablations: Sequence[Ablation] = (), target: float = TARGET
) -> Budget:
    """Return the budget of a claim from estimates; p0 is None if it was not requested.

    A status is decided only if every pair of probabilities in the intervals has it. `ablations` are those of the
    citations, in order, and used for a supported claim only. Raises ValueError for a `target` outside (0.5, 1).
    """
    if not 0.5 < target < 1.0:
        raise ValueError(f"a target is a probability above one half, not {target}")
    if isinstance(p1, Unavailable):
        return replace(_decided("unavailable", target), missing=p1)
    known = p0 if isinstance(p0, Probability) else None
    status = _status(p1, known, target)
    if status == "ambiguous" and isinstance(p0, Unavailable) and needs_p0(p1, target):
        return replace(_decided("unavailable", target, p1), missing=p0)
    decorative = _decorative(p1, known, ablations, target) if status == "supported" else ()
    return _decided("decorative_citation" if decorative else status, target, p1, known, decorative)


def towards(budget: Budget, target: float) -> Budget:
    """Return a budget with the same status and its bits relative to another target."""
    if target == budget.target:
        return budget
    missing = budget.missing
    return replace(_decided(budget.status, target, budget.p1, budget.p0, budget.decorative), missing=missing)


def is_settled(probability: Probability, target: float = TARGET) -> bool:
    """Return whether the whole interval lies in one band, so that a better estimate cannot change the decision."""
    return len(_bands(probability, target)) == 1


def are_alike(one: Estimate | None, other: Estimate | None, target: float = TARGET) -> bool:
    """Return whether both lie entirely in the same band."""
    if not isinstance(one, Probability) or not isinstance(other, Probability):
        return False
    return is_settled(one, target) and _bands(one, target) == _bands(other, target)


def is_flagged(budget: Budget, threshold_bits: float = 0.0) -> bool:
    """Return whether more bits than the threshold are missing for all probabilities within the intervals."""
    if budget.p1 is None or budget.p1.upper >= budget.target:
        return False
    return threshold_bits <= 0.0 or gap_bounds(budget.p0, budget.p1, budget.target)[0] > threshold_bits


def _status(p1: Probability, p0: Probability | None, target: float) -> BudgetStatus:
    possible = _possible(_bands(p1, target), _BANDS if p0 is None else _bands(p0, target))
    return possible.pop() if len(possible) == 1 else "ambiguous"


def _possible(of_p1: Sequence[_Band], of_p0: Sequence[_Band]) -> set[BudgetStatus]:
    return {_STATUS[one][nought] for one, nought in product(of_p1, of_p0)}


def _bands(probability: Probability, target: float) -> tuple[_Band, ...]:
    """Return the bands that the interval touches: up to `1 - target`, between, from `target`."""
    first, last = (_band(bound, target) for bound in (probability.lower, probability.upper))
    return _BANDS[first : last + 1]


def _band(value: float, target: float) -> int:
    return 2 if value >= target else 0 if value <= 1.0 - target else 1


def _decorative(
    p1: Probability, p0: Probability | None, ablations: Sequence[Ablation], target: float
) -> tuple[int, ...]:
    """Return the indices of citations that change nothing, neither when removed from all nor when left alone.

    Two citations with the same content each support the claim alone, so neither is decorative.
    """
    return tuple(
        place
        for place, each in enumerate(ablations)
        if are_alike(p1, each.without, target) and are_alike(p0, each.alone, target)
    )


def _decided(
    status: BudgetStatus,
    target: float,
    p1: Probability | None = None,
    p0: Probability | None = None,
    decorative: tuple[int, ...] = (),
) -> Budget:
    if p1 is None or p0 is None:
        return Budget(status, _REASONS[status], target, p1, p0, decorative=decorative)
    clipped = min(max(p0.value, p0.resolution), 1.0 - p0.resolution)
    required, observed = signed_bits(target, clipped), signed_bits(p1.value, clipped)
    gap = gap_bits(clipped, p1.value, target)
    return Budget(status, _REASONS[status], target, p1, p0, required, observed, gap, p0.resolution, decorative)
