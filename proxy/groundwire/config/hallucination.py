"""Settings of the model-backed estimators, and the backend of each operation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from groundwire.config.values import Duration, Secretive, Section, Share, require_scheme, without_passwords
from groundwire.domain import Operation

BackendName = Literal["self", "haiku", "external", "local"]


class Backend(Section):
    """The model that estimates probabilities of claims.

    With the type `configurable`, each operation may name a backend and otherwise uses `default`.
    """

    type: Literal["self", "haiku", "external", "local", "configurable"] = "configurable"
    default: BackendName = "local"
    haiku_model: str = "claude-haiku-4-5"
    external_url: Secretive | None = None
    external_key_env: str | None = None


class Asking(Section):
    """An operation that may call a model; `backend` may be set only if the type of backend is `configurable`."""

    enabled: bool = False
    backend: BackendName | None = None


class MemoryGate(Asking):
    """The check of facts before they are stored; for its options see `groundwire.features.memory.GatePolicy`."""

    min_confidence: Share = 0.5
    reject_unsupported: bool = True


class OutputVerification(Asking):
    """Model estimates for undecided claims, with a probability of support from `asked_from` to below `asked_below`.

    A claim that lacks more than `flag_threshold_bits` is flagged.
    """

    flag_threshold_bits: float = Field(default=0.0, ge=0)
    asked_from: Share = 0.2
    asked_below: Share = 0.8


class TraceAuditing(Asking):
    """The audit of reasoning step by step, and of the derivation of the answer from it (`check_post_hoc`)."""

    check_post_hoc: bool = True


class Hallucination(Section):
    """The model-backed estimators: off until enabled here and for each operation."""

    enabled: bool = False
    backend: Backend = Backend()
    memory_gate: MemoryGate = MemoryGate()
    output_verification: OutputVerification = OutputVerification()
    trace_auditing: TraceAuditing = TraceAuditing()
    batch_size: int = Field(default=8, ge=1, le=64)
    timeout: Duration = Field(default=2.0, gt=0)
    cache_ttl: Duration = 3600.0

    @property
    def operations(self) -> dict[Operation, BackendName]:
        """The backend of each enabled operation, by name."""
        parts: dict[Operation, Asking] = {
            "memory_gate": self.memory_gate,
            "output_verification": self.output_verification,
            "trace_auditing": self.trace_auditing,
        }
        return {name: self._backend(each.backend) for name, each in parts.items() if self.enabled and each.enabled}

    @property
    def identity(self) -> str:
        """The model or URL of the backend for output verification; "" if the settings contain neither."""
        names = {"haiku": self.backend.haiku_model, "external": without_passwords(self.backend.external_url or "")}
        return names.get(self.operations.get("output_verification", ""), "")

    def _backend(self, named: BackendName | None) -> BackendName:
        return (named or self.backend.default) if self.backend.type == "configurable" else self.backend.type

    @model_validator(mode="after")
    def _sensible(self) -> Hallucination:
        parts = (self.memory_gate, self.output_verification, self.trace_auditing)
        if self.backend.type != "configurable" and any(each.backend for each in parts):
            raise ValueError("an operation can name a backend of its own only where backend.type is configurable")
        if "external" in self.operations.values() and self.backend.external_url is None:
            raise ValueError("backend.external_url must be given where a backend is external")
        require_scheme("backend.external_url", self.backend.external_url, "http://", "https://")
        return self
