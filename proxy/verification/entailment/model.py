"""The port to an entailment model. Which model it is, and how it is run, is the business of `proxy.evidence`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from proxy.types import Source, Unavailable

State = Literal["ready", "loading", "failed", "off"]


@dataclass(frozen=True, slots=True)
class Question:
    """A claim with its lead ("" for none) and the evidence to compare it with.

    `sources` are the input of a language model instead of `evidence`: whole, or the parts closest to the claim.
    """

    claim: str
    lead: str
    evidence: str
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Entailment:
    """The probabilities (0–1) that the evidence supports a claim, and that it contradicts it.

    `doubted` are the phrases of the claim that the evidence does not state, where the model marks them.
    """

    supported: float
    contradicted: float = 0.0
    doubted: tuple[str, ...] = ()


Opinion = Entailment | Unavailable
"""The opinion of a model on a claim, or the cause of its absence."""


class EntailmentModel(Protocol):
    """Compares claims with their evidence. May be called from any thread."""

    @property
    def state(self) -> State:
        """The state; only a model that is `ready` may be called."""

    def entail(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """Return the opinion on each question, in order. Raises the model's errors."""


class NoModel:
    """The model where none is wanted."""

    state: State = "off"

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        """Raise RuntimeError: there is nothing to ask."""
        raise RuntimeError("there is no entailment model")
