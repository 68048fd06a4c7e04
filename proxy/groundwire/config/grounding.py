"""Settings of verification: the checks and their strictness, the judge, and the model-backed estimators."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from groundwire.config.values import Days, Duration, Secretive, Section, Share, Size, require_scheme, without_passwords
from groundwire.domain import Operation

SHIPPED = "shipped"
"""The name of the bundled entailment model."""
_ENCODER = "encoder:"


class Grounding(Section):
    """The checks to run and their strictness."""

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
    """Matching of quotations."""

    enabled: bool = True
    mode: Literal["substring", "fuzzy"] = "substring"
    fuzzy_threshold: float = Field(default=0.85, ge=0.5, le=1.0)
    log_rejections: bool = True
    fail_on_all_rejected: bool = False


class Tolerance(Section):
    """The allowed deviation, as a share of the value; for dates, in days."""

    currency: Share = 0.05
    percentage: Share = 0.02
    ratio: Share = 0.05
    date: Days = 7.0


class Numeric(Section):
    """The kinds of numbers to check."""

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
    """The judge of claims that no exact check decides.

    `by` is `encoder` (an entailment model that runs here: `model` to `max_tokens`), `self` (the model that answered),
    `external` (a service at `url`), `off`, or the name of a model that an upstream serves.
    """

    by: str = Field(default="encoder", min_length=1)
    model: str = SHIPPED
    profile: str | None = None
    revision: str | None = None
    file: str | None = None
    weights: str | None = None
    supported_label: str | None = None
    template: str | None = None
    max_tokens: int | None = Field(default=None, ge=64)
    url: Secretive | None = None
    key_env: str | None = None
    timeout: Duration = Field(default=30.0, gt=0)
    max_concurrent: int = Field(default=8, ge=1, le=256)
    max_chars: int = Field(default=24_000, ge=1000)

    @model_validator(mode="before")
    @classmethod
    def _of_encoder(cls, given: Any) -> Any:
        """Read `by: encoder:NAME` as an encoder and the name of its model."""
        by = given.get("by") if isinstance(given, dict) else None
        if isinstance(by, str) and by.startswith(_ENCODER):
            return {**given, "by": "encoder", "model": by.removeprefix(_ENCODER)}
        return given

    @model_validator(mode="after")
    def _sensible(self) -> JudgeSettings:
        if self.template is not None and self.template.count("{evidence}") != 1:
            raise ValueError("template must hold {evidence} once")
        if self.by == "external" and self.url is None:
            raise ValueError("url must be given where judge.by is external")
        require_scheme("url", self.url, "http://", "https://")
        return self

    @property
    def is_language(self) -> bool:
        """True where a language model or a service decides, false where an encoder does or words do."""
        return self.by not in ("encoder", "off")

    @property
    def encoder(self) -> JudgeSettings:
        """The settings of the encoder: these, or where a language model decides, those of the shipped one."""
        return JudgeSettings() if self.is_language else self

    @property
    def identity(self) -> str:
        """The settings that verdicts depend on, apart from the model's files."""
        if self.by == "off":
            return ""
        return self.model_dump_json(exclude={"key_env", "timeout", "max_concurrent"})


class Weights(Section):
    """Weights of the four components of confidence; they need not add up to one."""

    retrieval: float = Field(default=0.3, ge=0)
    source: float = Field(default=0.25, ge=0)
    extraction: float = Field(default=0.25, ge=0)
    consistency: float = Field(default=0.2, ge=0)


class SourceWeights(Section):
    """The reliability of each kind of source."""

    tool: Share = 1.0
    document: Share = 1.0
    source: Share = 1.0
    system: Share = 0.9
    user: Share = 0.7


class ConfidenceSettings(Section):
    """Confidence scores in reports and their computation."""

    enabled: bool = True
    weights: Weights = Weights()
    source_weights: SourceWeights = SourceWeights()


class ConsistencySettings(Section):
    """Comparison of answers with earlier answers about the same subject."""

    enabled: bool = True


class Thresholds(Section):
    """Thresholds of warnings: minimum grounding, consistency and confidence, and maximum risk."""

    grounding: Share = 0.7
    consistency: Share = 0.8
    confidence: Share = 0.6
    risk: Share = 0.3


class Correction(Section):
    """A second request to the model when an answer violates its schema."""

    enabled: bool = False
    on_request: bool = True
    timeout: Duration = Field(default=60.0, gt=0)


class Sampling(Section):
    """Repeated sampling of an answer to measure its self-consistency."""

    enabled: bool = False
    on_request: bool = True
    samples: int = Field(default=3, ge=3, le=5)
    temperatures: tuple[Annotated[float, Field(ge=0, le=2)], ...] = Field(default=(0.0, 0.1, 0.2), min_length=1)
    timeout: Duration = Field(default=60.0, gt=0)


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


class ModelOperation(Section):
    """An operation that may call a model; `backend` may be set only if the type of backend is `configurable`."""

    enabled: bool = False
    backend: BackendName | None = None


class MemoryGate(ModelOperation):
    """The check of facts before they are stored; for its options see `groundwire.features.memory.GatePolicy`."""

    min_confidence: Share = 0.5
    reject_unsupported: bool = True


class OutputVerification(ModelOperation):
    """Model estimates for undecided claims: those with a probability of support in [probability_min, probability_max).

    A claim that lacks more than `flag_threshold_bits` is flagged.
    """

    flag_threshold_bits: float = Field(default=0.0, ge=0)
    probability_min: Share = 0.2
    probability_max: Share = 0.8


class TraceAuditing(ModelOperation):
    """The audit of reasoning step by step, and of the derivation of the answer from it (`check_post_hoc`)."""

    check_post_hoc: bool = True


class InformationBudget(Section):
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
        parts: dict[Operation, ModelOperation] = {
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
    def _sensible(self) -> InformationBudget:
        parts = (self.memory_gate, self.output_verification, self.trace_auditing)
        if self.backend.type != "configurable" and any(each.backend for each in parts):
            raise ValueError("an operation can name a backend of its own only where backend.type is configurable")
        if "external" in self.operations.values() and self.backend.external_url is None:
            raise ValueError("backend.external_url must be given where a backend is external")
        require_scheme("backend.external_url", self.backend.external_url, "http://", "https://")
        return self
