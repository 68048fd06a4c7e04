"""Settings of verification: what is checked, how strictly, and what is worth a warning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from proxy.config.values import Days, Duration, Section, Share, Size

SHIPPED = "shipped"
"""The name of the model that is part of the package."""


class Grounding(Section):
    """What is verified, and how strictly."""

    enabled: bool = True
    mode: Literal["sync", "async", "off"] = "sync"
    verifiers: tuple[Literal["quote", "numeric", "statement"], ...] = ("quote", "numeric", "statement")
    policy: Literal["strict", "balanced", "lenient"] = "balanced"
    max_claims: int = Field(default=500, ge=1)
    hedged: Literal["exclude", "verify"] = "exclude"
    timeout: Duration = 2.0
    workers: int = Field(default=1, ge=1, le=64)
    queue: int = Field(default=64, ge=1)
    max_bytes: Size = 256 * 2**20
    keep_reports: Size = 32 * 2**20


class Quotes(Section):
    """How quotations are looked for."""

    enabled: bool = True
    mode: Literal["substring", "fuzzy"] = "substring"
    fuzzy_threshold: float = Field(default=0.85, ge=0.5, le=1.0)
    log_rejections: bool = True
    fail_on_all_rejected: bool = False


class Tolerance(Section):
    """How near is near enough, as a share of the value; for dates, in days."""

    currency: Share = 0.05
    percentage: Share = 0.02
    ratio: Share = 0.05
    date: Days = 7.0


class Numeric(Section):
    """Which numbers are checked."""

    currency: bool = True
    percentage: bool = True
    ratio: bool = True
    date: bool = True
    documents: bool = True
    facts: bool = True
    auto_flag: bool = True
    tolerance: Literal["written"] | Tolerance = "written"
    confidence_penalty: Share = 0.2
    max_source_checks: int = Field(default=10, ge=1)
    timeout: Duration = 0.1


class JudgeSettings(Section):
    """The entailment model that decides what no exact check does, and how its files are read."""

    by: Literal["encoder", "off"] = "encoder"
    model: str = SHIPPED
    profile: str | None = None
    revision: str | None = None
    file: str | None = None
    weights: str | None = None
    supported_label: str | None = None
    template: str | None = None
    max_tokens: int | None = Field(default=None, ge=64)

    @model_validator(mode="after")
    def _sensible(self) -> JudgeSettings:
        if self.template is not None and self.template.count("{evidence}") != 1:
            raise ValueError("template must hold {evidence} once")
        return self

    @property
    def identity(self) -> str:
        """What of it verdicts depend on, apart from the model's files."""
        return "" if self.by == "off" else self.model_dump_json()


class Weights(Section):
    """What the four parts of confidence count; they need not add up to one."""

    retrieval: float = Field(default=0.3, ge=0)
    source: float = Field(default=0.25, ge=0)
    extraction: float = Field(default=0.25, ge=0)
    consistency: float = Field(default=0.2, ge=0)


class SourceWeights(Section):
    """How far each kind of source is to be relied on."""

    tool: Share = 1.0
    document: Share = 1.0
    source: Share = 1.0
    system: Share = 0.9
    user: Share = 0.7


class ConfidenceSettings(Section):
    """Whether reports have a confidence, and how it is put together."""

    enabled: bool = True
    weights: Weights = Weights()
    source_weights: SourceWeights = SourceWeights()


class ConsistencySettings(Section):
    """Whether answers are compared with earlier answers about their subject."""

    enabled: bool = True


class Thresholds(Section):
    """What is worth a warning: grounding, consistency and confidence below these, a risk above its own."""

    grounding: Share = 0.7
    consistency: Share = 0.8
    confidence: Share = 0.6
    risk: Share = 0.3


class Correction(Section):
    """Whether a model is asked once more for an answer that breaks its schema."""

    enabled: bool = False
    on_request: bool = True
    timeout: Duration = Field(default=60.0, gt=0)


class Sampling(Section):
    """How often an answer is sampled again to see whether it comes out the same."""

    enabled: bool = False
    on_request: bool = True
    samples: int = Field(default=3, ge=3, le=5)
    temperatures: tuple[Annotated[float, Field(ge=0, le=2)], ...] = Field(default=(0.0, 0.1, 0.2), min_length=1)
    timeout: Duration = Field(default=60.0, gt=0)
