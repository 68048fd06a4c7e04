"""The log: one JSON line per event on standard error, which holds no text of requests or answers and never a key."""

from __future__ import annotations

import hashlib
import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

import structlog
from opentelemetry import trace

from proxy.config import Telemetry as TelemetrySettings


def short_hash(text: str) -> str:
    """The first 12 hexadecimal digits of a text's SHA-256: names a text in a log without showing it (QU5)."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def configure_logs(settings: TelemetrySettings) -> None:
    """One JSON line per event on standard error, with the trace it belongs to."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_trace,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if settings.capture_content else _WITHOUT_TEXT,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _places(exc_info: structlog.typing.ExcInfo) -> str:
    """An exception, and those it came from, by class and places; its text may quote what it failed on."""
    lines: list[str] = []
    error: BaseException | None = exc_info[1]
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        lines += [type(error).__name__, *(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)


_WITHOUT_TEXT = structlog.processors.ExceptionRenderer(_places)


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event
