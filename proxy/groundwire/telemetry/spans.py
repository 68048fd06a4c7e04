"""Spans as the gateway records them, and the two that nothing is recorded on: no span, and the caller's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Literal

from groundwire.wire import Headers, header

Kind = Literal["internal", "server", "client", "consumer"]
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}")


class Span:
    """A span that records nothing. `traceparent` is its W3C trace context, empty if it belongs to no trace."""

    __slots__ = ("is_recording", "traceparent")

    def __init__(self, traceparent: str = "", *, is_recording: bool = False) -> None:
        self.traceparent = traceparent
        self.is_recording = is_recording

    @property
    def trace_id(self) -> str:
        """The trace id in hexadecimal digits, empty if there is none."""
        return self.traceparent[3:35]

    @property
    def span_id(self) -> str:
        """The span id in hexadecimal digits, empty if there is none."""
        return self.traceparent[36:52]

    @property
    def exemplar(self) -> dict[str, str] | None:
        """The exemplar of a measurement made in this span, if it is recorded."""
        return {"trace_id": self.trace_id, "span_id": self.span_id} if self.is_recording else None

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes."""

    def fail(self, error: str) -> None:
        """Record an error by its class or status."""

    def event(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Add an event."""

    def link(self, traceparent: str) -> None:
        """Link to a span of another trace."""

    def propagate(self, headers: Headers) -> Headers:
        """Return request headers with this span's trace context instead of the caller's."""
        return headers

    def activate(self) -> Any:
        """Make this the current span. Return a token for `deactivate`."""
        return CURRENT.set(self)

    def deactivate(self, token: Any) -> None:
        """Make the previous span the current one again."""
        with suppress(ValueError):  # an async generator may be closed by another task, where this is not current
            CURRENT.reset(token)

    def end(self) -> None:
        """End the span."""


NO_SPAN = Span()
CURRENT: ContextVar[Span] = ContextVar("groundwire_span", default=NO_SPAN)


class Tracer:
    """A tracer that records nothing; the caller's trace context still reaches the log."""

    enabled = False

    def start(self, name: str, kind: Kind, attributes: Mapping[str, Any]) -> Span:
        """Start a child of the current span."""
        return Span(CURRENT.get().traceparent)

    def start_root(self, name: str, kind: Kind, attributes: Mapping[str, Any], headers: Headers = ()) -> Span:
        """Start a span that continues the trace of these headers, or a new trace."""
        found = (header(headers, b"traceparent") or b"").decode("latin-1").strip()
        return Span(found if _TRACEPARENT.fullmatch(found) else CURRENT.get().traceparent)


NO_TRACER = Tracer()


@contextmanager
def active(span: Span) -> Iterator[Span]:
    """Make a span the current one, and end it. An error is recorded by its class only, as its text may be private."""
    token = span.activate()
    try:
        yield span
    except BaseException as error:
        span.fail(type(error).__name__)
        raise
    finally:
        span.end()
        span.deactivate(token)
