"""Write logs: one JSON line per event on standard error, without text of requests or answers and without keys."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from groundwire.config import Telemetry as TelemetrySettings
from groundwire.telemetry.spans import CURRENT
from groundwire.telemetry.telemetry import Telemetry

if TYPE_CHECKING:
    from groundwire.telemetry.otlp import LogExport


def configure_logs(settings: TelemetrySettings, telemetry: Telemetry | None = None) -> None:
    """Configure logs as one JSON line per event on standard error, with its trace id; a collector receives them too."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _add_trace,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if settings.capture_content else _CLASSES_AND_FRAMES,
            *([partial(_export, telemetry.events)] if telemetry and telemetry.events is not None else []),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _LibraryHandler)]:
        root.removeHandler(handler)
    root.addHandler(_LibraryHandler(settings.capture_content))


class _LibraryHandler(logging.Handler):
    """Log the warnings of libraries as events. Their messages may quote anything, so only the beginning is kept.

    Without this handler Python would print them, with the texts of exceptions.
    """

    def __init__(self, whole: bool) -> None:
        super().__init__(logging.WARNING)
        self._whole = whole

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; values that the library would interpolate are left out."""
        message = record.getMessage() if self._whole else str(record.msg).partition("\n")[0].partition(":")[0][:200]
        logger = structlog.get_logger("groundwire.libraries")
        logger.log(record.levelno, "library.warned", library=record.name, said=message, exc_info=record.exc_info)


def _format_frames(exc_info: structlog.typing.ExcInfo) -> str:
    """Format an exception and its causes by class and frames; its text may quote private data."""
    lines: list[str] = []
    error: BaseException | None = exc_info[1]
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        lines += [type(error).__name__, *(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)


_CLASSES_AND_FRAMES = structlog.processors.ExceptionRenderer(_format_frames)


def _add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    span = CURRENT.get()
    if span.traceparent:
        event["trace_id"] = span.trace_id
        event["span_id"] = span.span_id
    return event


def _export(events: LogExport, _: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Pass an event to the collector's queue as well."""
    events.line(event)
    return event
