"""Measure self-consistency: how far other answers to the same request agree with each claim of an answer.

After SelfCheckGPT (Manakul, Liusie and Gales 2023), with the embedded verifier instead of a second model: facts that a
model knows recur in samples, invented ones vary. The comparison is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from groundwire.domain import Claim, Label, Source
from groundwire.evidence.index import Context
from groundwire.judge import Judge
from groundwire.policy import Policy

_VOTES: dict[Label, float] = {"supported": 1.0, "unsupported": 0.5, "contradicted": 0.0}
"""The vote of a sample on a claim: agreement, no mention, or contradiction."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The votes of samples on one claim, in order: 1 agrees, ½ does not mention it, 0 contradicts it, None is unknown.

    `variance` is the mean squared difference of the votes from 1 (0–1), None if no vote is known.
    """

    claim: Claim
    votes: tuple[float | None, ...]

    @property
    def variance(self) -> float | None:
        """The mean squared difference of the known votes from 1."""
        known = [vote for vote in self.votes if vote is not None]
        return sum((1.0 - vote) ** 2 for vote in known) / len(known) if known else None


def risk_of(claims: Iterable[Agreement]) -> float | None:
    """Return the mean variance of claims (0–1), None if none has one: the risk that their answer is invented.

    For ranking: it is not a calibrated probability.
    """
    known = [each.variance for each in claims if each.variance is not None]
    return sum(known) / len(known) if known else None


def compare_answers(
    claims: Sequence[Claim],
    samples: Sequence[str],
    policy: Policy,
    judge: Judge = Judge(),
) -> tuple[Agreement, ...]:
    """Compare the claims of an answer with other answers to the same request.

    Claims that assert nothing are left out.
    """
    contexts = [Context([Source("sample", "source", sample)]) for sample in samples]
    asserted = [claim for claim in claims if claim.skip_reason is None]
    return tuple(
        Agreement(claim, tuple(_VOTES.get(judge.one(claim, each, policy).verdict.label) for each in contexts))
        for claim in asserted
    )
