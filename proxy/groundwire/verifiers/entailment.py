"""Entailment: the interface of models that read a claim together with its evidence.

Implementations are in `groundwire.backends`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from groundwire.domain import Source, Unavailable

State = Literal["ready", "loading", "failed", "off"]


@dataclass(frozen=True, slots=True)
class Question:
    """A claim with its lead ("" for none) and the evidence to compare it with.

    A language model reads `sources` instead of `evidence`: the whole sources, or the parts closest to the claim.
    """

    claim: str
    lead: str
    evidence: str
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True, slots=True)
class Entailment:
    """The probabilities (0–1) that the evidence supports a claim, and that it contradicts it.

    `doubted` are the phrases of the claim that the evidence does not state; empty if the model does not mark any.
    """

    supported: float
    contradicted: float = 0.0
    doubted: tuple[str, ...] = ()


Opinion = Entailment | Unavailable
"""A model's opinion on a claim, or the reason why there is none."""


class EntailmentModel(Protocol):
    """A model that compares claims with evidence. It may be called from any thread."""

    @property
    def state(self) -> State:
        """The state; only a model that is `ready` may be called."""

    def entail(self, questions: Sequence[Question]) -> Sequence[Opinion]:
        """Return the opinion on each question, in order. Raises the model's errors."""


class NoModel:
    """A placeholder for a model that is switched off."""

    state: State = "off"

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        """Raise RuntimeError: there is no model to call."""
        raise RuntimeError("there is no entailment model")
