"""Self-consistency: how far further answers to the same request say what this one says, claim by claim (SC1).

After SelfCheckGPT (Manakul, Liusie and Gales 2023), with the embedded verifier in the place of a second model: what a
model knows it says again, what it invents comes out differently. The comparison is deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.types import Claim, Label, Policy, Source
from proxy.verification.context.index import Context
from proxy.verification.judge import Judge

_VOTES: dict[Label, float] = {"supported": 1.0, "unsupported": 0.5, "contradicted": 0.0}
"""What a sample says of a claim: the same, nothing of the kind, or otherwise."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the samples say of one claim: `votes` in their order, 1 the same, ½ not told, 0 otherwise, None not known.

    `variance` is their mean squared deviation from the claim (0–1), None without a vote.
    """

    claim: Claim
    votes: tuple[float | None, ...]

    @property
    def variance(self) -> float | None:
        """How far the samples vary about the claim."""
        known = [vote for vote in self.votes if vote is not None]
        return sum((1.0 - vote) ** 2 for vote in known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class Consistency:
    """How far an answer is borne out by samples; `risk` is the mean variance of its claims, None when none has any."""

    claims: tuple[Agreement, ...]

    @property
    def risk(self) -> float | None:
        """How likely the answer is made up, as an ordering (0–1)."""
        known = [each.variance for each in self.claims if each.variance is not None]
        return sum(known) / len(known) if known else None


def compare_answers(
    claims: Sequence[Claim],
    samples: Sequence[str],
    policy: Policy,
    judge: Judge = Judge(),
) -> Consistency:
    """The claims of an answer beside other answers to the same request; those that assert nothing are left out."""
    contexts = [Context([Source("sample", "source", sample)]) for sample in samples]
    asserted = [claim for claim in claims if claim.skip_reason is None]
    return Consistency(
        tuple(
            Agreement(claim, tuple(_vote(claim, context, policy, judge) for context in contexts)) for claim in asserted
        )
    )


def _vote(claim: Claim, context: Context, policy: Policy, judge: Judge) -> float | None:
    return _VOTES.get(judge.one(claim, context, policy).verdict.label)
