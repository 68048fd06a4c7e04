"""Build telemetry from the settings. prometheus-client and OpenTelemetry are loaded only if they are used."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING

import structlog

from groundwire.config import Telemetry as TelemetrySettings
from groundwire.errors import ConfigError
from groundwire.telemetry.instruments import LOST_TELEMETRY, SCORES_LOST
from groundwire.telemetry.metrics import LoopLag, Metrics
from groundwire.telemetry.names import EDITIONS
from groundwire.telemetry.scores import build_scores
from groundwire.telemetry.spans import NO_TRACER
from groundwire.telemetry.telemetry import Telemetry

if TYPE_CHECKING:
    from groundwire.telemetry.otlp import Collector

log = structlog.get_logger("groundwire.telemetry")

INSTALL = "pip install 'groundwire[telemetry]'"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def build_telemetry(
    settings: TelemetrySettings, environ: Mapping[str, str] = os.environ, models: Iterable[str] = ()
) -> Telemetry:
    """Build telemetry that measures by default, and exports to a collector if the settings name one.

    Otherwise OpenTelemetry's standard variables may name it; headers and certificates come from these only. `models`
    may be used as labels from the start. Raises ConfigError if the settings name a collector and the libraries of the
    extra `telemetry` are not installed.
    """
    ours = version("groundwire")
    metrics = _metrics(settings, models, ours)
    collector = _collector(settings, environ, metrics, ours) if is_sending(settings, environ) else None
    lag = LoopLag(metrics.lag) if metrics else None
    names = EDITIONS[settings.genai_semconv]
    tracer, events = (collector.tracer, collector.events) if collector else (NO_TRACER, None)
    scores = build_scores(settings.scores, environ)
    if scores is not None and metrics is not None:
        metrics.read(lambda: [(SCORES_LOST, (target,), count) for target, count in scores.lost()])
    return Telemetry(tracer, metrics, names, settings.capture_content, events, lag, collector, scores)


def is_sending(settings: TelemetrySettings, environ: Mapping[str, str]) -> bool:
    """Return whether there is a collector; OTEL_SDK_DISABLED disables it."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return settings.otlp_endpoint is not None or any(environ.get(name) for name in _ENDPOINTS)


def _metrics(settings: TelemetrySettings, models: Iterable[str], ours: str) -> Metrics | None:
    """Return the metrics; None if they are disabled or prometheus-client is not installed."""
    if not settings.metrics:
        return None
    try:
        return Metrics(settings.genai_semconv, models, ours)
    except ImportError:
        return None


def _collector(
    settings: TelemetrySettings, environ: Mapping[str, str], metrics: Metrics | None, ours: str
) -> Collector | None:
    """Connect to the collector. Without the libraries, an address in the settings is an error.

    An address in the environment may be meant for other processes, so it is only logged.
    """
    try:
        from groundwire.telemetry.otlp import Collector
    except ImportError as error:
        if settings.otlp_endpoint is not None:
            raise ConfigError([f"telemetry.otlp_endpoint: OpenTelemetry is not installed; {INSTALL}"]) from error
        log.warning("telemetry.not_installed", install=INSTALL)
        return None
    collector = Collector(settings, ours, environ, metrics)
    failures = collector.health.failures
    if metrics is not None:
        metrics.read(lambda: [(LOST_TELEMETRY, (signal,), count) for signal, count in tuple(failures.items())])
    return collector
