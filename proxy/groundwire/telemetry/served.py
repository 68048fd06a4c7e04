"""One HTTP request: its span, its place in the caller's trace, and its log line."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType, TracebackType

from groundwire.telemetry.metrics import Metrics, exemplar_of
from groundwire.telemetry.names import CLIENT, METHOD, ROUTE, STATUS_CODE
from groundwire.telemetry.spans import Span, Tracer
from groundwire.wire import Headers

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
        "_active", "_entered", "_error", "_metrics", "_route", "_span", "_started", "_status", "method", "told",
    )  # fmt: skip

    def __init__(self, tracer: Tracer, metrics: Metrics | None, method: str, route: str, headers: Headers) -> None:
        self.method = method if method in _METHODS else _UNKNOWN
        self.told: dict[str, int | str] = {}
        self._route = route
        self._metrics = metrics
        self._status = self._error = ""
        self._started = time.perf_counter()
        attributes = self._attributes(method, headers) if tracer.enabled else {}
        self._span: Span = tracer.start_root(f"{self.method} {route}", "server", attributes, headers)

    def __enter__(self) -> Served:
        self._active = self._span.activate()
        self._entered = _SERVED.set(self)
        if self._metrics is not None:
            self._metrics.active.inc()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None:
            self.broke_off(kind.__name__)
        if self._metrics is not None:
            self._metrics.active.dec()
            labels = (self.method, self._route, self._status, self._error)
            took = time.perf_counter() - self._started
            self._metrics.requests.labels(*labels).observe(took, exemplar_of(self._span))
        self._span.end()
        self._span.deactivate(self._active)
        _SERVED.reset(self._entered)

    def answered(self, status: int) -> None:
        """Record that the reply has been sent completely."""
        self._status = str(status)
        self._span.set({STATUS_CODE: status})
        if status >= 500:
            self.broke_off(self._status)

    def client(self, name: str) -> None:
        """Record the name of the client's key."""
        self._span.set({CLIENT: name})

    def broke_off(self, reason: str) -> None:
        """Record a failure: the client disconnected, or the reply broke off."""
        self._error = reason
        self._span.fail(reason)

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
