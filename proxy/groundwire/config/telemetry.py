"""Settings of telemetry."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from groundwire.config.values import Duration, Secretive, Section, require_scheme


class Scores(Section):
    """Targets to which the scores of answers are sent, by the traces that the answers belong to."""

    langfuse_url: Secretive | None = None
    langfuse_public_key_env: str = "LANGFUSE_PUBLIC_KEY"
    langfuse_secret_key_env: str = "LANGFUSE_SECRET_KEY"  # noqa: S105 - the name of a variable
    phoenix_url: Secretive | None = None
    phoenix_key_env: str = "PHOENIX_API_KEY"
    interval: Duration = Field(default=5.0, gt=0)

    @model_validator(mode="after")
    def _known(self) -> Scores:
        require_scheme("langfuse_url", self.langfuse_url, "http://", "https://")
        require_scheme("phoenix_url", self.phoenix_url, "http://", "https://")
        return self


class Telemetry(Section):
    """Metrics, traces and logs: export and content."""

    service_name: str = "groundwire"
    resource: dict[str, str] = {}
    metrics: bool = True
    metrics_access: Literal["open", "admin"] = "open"
    otlp_endpoint: Secretive | None = None
    otlp_signals: tuple[Literal["traces", "metrics", "logs"], ...] = ("traces", "metrics", "logs")
    metrics_interval: Duration = Field(default=60.0, gt=0)
    sample_ratio: float = Field(default=1.0, ge=0, le=1)
    genai_semconv: Literal["1.41", "next"] = "1.41"
    capture_content: bool = False
    scores: Scores = Scores()
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _known(self) -> Telemetry:
        require_scheme("otlp_endpoint", self.otlp_endpoint, "http://", "https://")
        return self
