"""Sends spans and log records to a collector by OTLP over HTTP; the SDK for that is imported only where it is on."""

from __future__ import annotations

import threading
import time

from proxy.config import Telemetry as TelemetrySettings
from proxy.telemetry.traces import Telemetry

_CLOSE_S = 2.0  # at most for sending what is left: a receiver that is down must not hold up the end


def build_telemetry(settings: TelemetrySettings) -> Telemetry:
    """Telemetry that exports by OTLP over HTTP when an endpoint is configured, and otherwise records nothing."""
    if settings.otlp_endpoint is None:
        return Telemetry()
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    endpoint = settings.otlp_endpoint.rstrip("/")
    resource = Resource.create({"service.name": settings.service_name})
    spans = TracerProvider(resource=resource)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint}/v1/traces")))
    logs = LoggerProvider(resource=resource)
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{endpoint}/v1/logs")))

    def close() -> None:
        closing = [threading.Thread(target=each.shutdown, daemon=True) for each in (spans, logs)]
        for each in closing:
            each.start()
        until = time.monotonic() + _CLOSE_S
        for each in closing:
            each.join(max(0.0, until - time.monotonic()))

    return Telemetry(spans.get_tracer("groundwire"), logs.get_logger("groundwire"), settings.capture_content, close)
