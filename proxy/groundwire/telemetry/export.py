"""Build telemetry from the settings; the exporters are imported only if there is a collector."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib.metadata import version

from groundwire.config import Telemetry as TelemetrySettings
from groundwire.telemetry.instruments import LOST_TELEMETRY
from groundwire.telemetry.lag import LoopLag
from groundwire.telemetry.metrics import Metrics
from groundwire.telemetry.names import EDITIONS
from groundwire.telemetry.telemetry import Telemetry

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def build_telemetry(
    settings: TelemetrySettings, environ: Mapping[str, str] = os.environ, models: Iterable[str] = ()
) -> Telemetry:
    """Build telemetry that measures by default, and exports to a collector if the settings name one.

    Otherwise OpenTelemetry's standard variables may name it; headers and certificates come from these only. `models`
    may be used as labels from the start.
    """
    ours = version("groundwire")
    names = EDITIONS[settings.genai_semconv]
    sends = is_sending(settings, environ)
    metrics = Metrics(settings.genai_semconv, models, ours) if settings.metrics else None
    lag = LoopLag(metrics.lag) if metrics else None
    if not sends:
        if metrics is None or lag is None:
            return Telemetry(names=names)
        return Telemetry(names=names, metrics=metrics, start=lag.start, close=lag.stop)
    from groundwire.telemetry.collector import Collector

    collector = Collector(settings, ours, environ, metrics)
    failures = collector.watch.failures
    if metrics is not None:
        metrics.read(lambda: [(LOST_TELEMETRY, (signal,), count) for signal, count in tuple(failures.items())])

    def start() -> None:
        if lag is not None:
            lag.start()

    def close() -> None:
        if lag is not None:
            lag.stop()
        collector.close()

    return Telemetry(
        collector.tracer,
        collector.events,
        settings.capture_content,
        close,
        metrics,
        names,
        start,
        collector.watch.degraded,
    )


def is_sending(settings: TelemetrySettings, environ: Mapping[str, str]) -> bool:
    """Return whether there is a collector; OTEL_SDK_DISABLED disables it."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return settings.otlp_endpoint is not None or any(environ.get(name) for name in _ENDPOINTS)
