"""Settings of telemetry."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from groundwire.config.values import Duration, Secretive, Section, require_scheme


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
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _known(self) -> Telemetry:
        require_scheme("otlp_endpoint", self.otlp_endpoint, "http://", "https://")
        return self
