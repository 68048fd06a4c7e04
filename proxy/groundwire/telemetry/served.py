"""One HTTP request: its span, its place in the caller's trace, and its log line."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar, Token
from types import MappingProxyType, TracebackType

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from groundwire.telemetry.metrics import Metrics
from groundwire.telemetry.names import CLIENT, ERROR, METHOD, ROUTE, STATUS_CODE
from groundwire.wire import Headers

PROPAGATOR = TraceContextTextMapPropagator()
W3C = frozenset({b"traceparent", b"tracestate"})
_METHODS = frozenset("GET HEAD POST PUT DELETE CONNECT OPTIONS TRACE PATCH QUERY".split())
_UNKNOWN = "_OTHER"  # the conventions' term; clients may send any method
ABOUT: ContextVar[Mapping[str, str]] = ContextVar("groundwire_about", default=MappingProxyType({}))
"""Attributes of every span that belongs to the exchange of the current context: session and subject."""
_SERVED: ContextVar[Served | None] = ContextVar("groundwire_served", default=None)


class Served:
    """One request, entered on arrival and left when its reply is sent. `told` is added to its log line.

    All work for the request belongs to its span, also in tasks and threads that outlive it.
    """

    __slots__ = (
        "_attached",
        "_entered",
        "_error",
        "_metrics",
        "_route",
        "_span",
        "_started",
        "_status",
        "method",
        "told",
    )

    def __init__(
        self, tracer: Tracer | None, metrics: Metrics | None, method: str, route: str, headers: Headers
    ) -> None:
        self.method = method if method in _METHODS else _UNKNOWN
        self.told: dict[str, int | str] = {}
        self._route = route
        self._metrics = metrics
        self._status = self._error = ""
        self._started = time.perf_counter()
        self._span: Span = INVALID_SPAN
        self._entered: Token[Served | None] | None = None
        self._attached: Token[Context] | None = None
        caller = _context_of(headers)
        if tracer is not None:
            self._span = tracer.start_span(
                f"{self.method} {route}", caller, SpanKind.SERVER, self._attributes(method, headers)
            )
            self._attached = context.attach(trace.set_span_in_context(self._span, caller))
        elif caller is not None:  # without recording, the log still names the caller's trace
            self._attached = context.attach(caller)

    def __enter__(self) -> Served:
        self._entered = _SERVED.set(self)
        if self._metrics is not None:
            self._metrics.active += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            self.broke_off(kind.__name__)
        if self._metrics is not None:
            self._metrics.active -= 1
            took = time.perf_counter() - self._started
            labels = (self.method, self._route, self._status, self._error)
            self._metrics.requests.at(labels).observe(took, exemplar_of(self._span))
        self._span.end()
        if self._attached is not None:
            context.detach(self._attached)
        if self._entered is not None:
            _SERVED.reset(self._entered)

    def answered(self, status: int) -> None:
        """Record that the reply has been sent completely."""
        self._status = str(status)
        self._span.set_attribute(STATUS_CODE, status)
        if status >= 500:
            self.broke_off(self._status)

    def client(self, name: str) -> None:
        """Record the name of the client's key."""
        self._span.set_attribute(CLIENT, name)

    def broke_off(self, reason: str) -> None:
        """Record a failure: the client disconnected, or the reply broke off."""
        self._error = reason
        self._span.set_attribute(ERROR, reason)
        self._span.set_status(Status(StatusCode.ERROR))

    def _attributes(self, method: str, headers: Headers) -> dict[str, str]:
        """Return attributes with the route instead of the path, because a path may name a subject."""
        agent = next((value for name, value in headers if name == b"user-agent"), b"")
        found = {METHOD: self.method, ROUTE: self._route, "url.path": self._route, "url.scheme": "http"}
        if self.method is _UNKNOWN:
            found["http.request.method_original"] = method
        if agent:
            found["user_agent.original"] = agent.decode("latin-1")
        return found


def served() -> Served | None:
    """Return the request of the current context, if any."""
    return _SERVED.get()


def exemplar_of(span: Span) -> tuple[int, int] | None:
    """Return the trace id and span id of a recording span."""
    if not span.is_recording():
        return None
    found = span.get_span_context()
    return found.trace_id, found.span_id


def _context_of(headers: Headers) -> Context | None:
    """Return the trace context in the headers; None if there is none."""
    carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name in W3C}
    return PROPAGATOR.extract(carrier, Context()) if carrier else None
