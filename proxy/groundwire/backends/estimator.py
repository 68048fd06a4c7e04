"""The interface of all back ends that estimate the probability of a claim."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from groundwire.domain import Claim, Estimate, Source


class Estimator(Protocol):
    """Estimates for one operation, such as the verification of one answer.

    Raises nothing but cancellation: a missing probability is returned with its cause.
    """

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """Return the probability that a claim is true, given these sources and nothing else."""

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """Return the probabilities of several claims on one context, in their order."""


class Meter:
    """Counts the cost of estimates: calls sent, and tokens as far as the servers report them."""

    def __init__(self) -> None:
        self.calls = self.prompt_tokens = self.completion_tokens = 0

    def count(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Add the tokens of one answer."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an operation: claims per call, concurrent calls (shared by all), and deadline (loop time)."""

    batch_size: int
    at_once: asyncio.Semaphore
    until: float


def groups(claims: Sequence[Claim], size: int) -> list[Sequence[Claim]]:
    """Split the claims, in their order, into groups of `size`."""
    return [claims[at : at + size] for at in range(0, len(claims), size)]
