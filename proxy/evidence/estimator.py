"""What estimates how likely a claim is, whichever backend does it (IB5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from proxy.types import Claim, Estimate, Source


class Estimator(Protocol):
    """Estimates for one operation, such as the verification of one answer.

    It raises nothing but cancellation: where there is no probability, it says why.
    """

    async def estimate_probability(self, claim: Claim, context: Sequence[Source]) -> Estimate:
        """How likely a claim is true, given these sources and nothing else."""

    async def batch_estimate(self, claims: Sequence[Claim], context: Sequence[Source]) -> Sequence[Estimate]:
        """The same of several claims on one context, in their order."""


class Meter:
    """Counts what estimates cost: calls that were sent, and tokens as far as the servers tell them."""

    def __init__(self) -> None:
        self.calls = self.prompt_tokens = self.completion_tokens = 0

    def count(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Adds the tokens of one answer."""
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens


@dataclass(frozen=True, slots=True)
class Limits:
    """How an operation may ask: claims in one call, calls at once (shared by all), and until when (loop time)."""

    batch_size: int
    at_once: asyncio.Semaphore
    until: float


def groups(claims: Sequence[Claim], size: int) -> list[Sequence[Claim]]:
    """The claims in their order, `size` at a time."""
    return [claims[at : at + size] for at in range(0, len(claims), size)]
