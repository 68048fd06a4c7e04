"""The port to an entailment model. Which model it is, and how it is run, is the business of `proxy.evidence`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["ready", "loading", "failed", "off"]


@dataclass(frozen=True, slots=True)
class Question:
    """A claim with the text that it leans on ("" for none) and the evidence that it is compared with."""

    claim: str
    lead: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Entailment:
    """The probabilities (0–1) that the evidence supports a claim, and that it contradicts it.

    `doubted` are the phrases of the claim that the evidence does not state, where the model marks them.
    """

    supported: float
    contradicted: float = 0.0
    doubted: tuple[str, ...] = ()


class EntailmentModel(Protocol):
    """Reads claims beside their evidence. Any thread may call it."""

    @property
    def state(self) -> State:
        """Whether it can be asked; only a model that is `ready` can."""

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        """Return what the model says of each question, in order. Raises what the model fails with."""


class NoModel:
    """The model where none is wanted."""

    state: State = "off"

    def entail(self, questions: Sequence[Question]) -> list[Entailment]:
        """Raise RuntimeError: there is nothing to ask."""
        raise RuntimeError("there is no entailment model")
