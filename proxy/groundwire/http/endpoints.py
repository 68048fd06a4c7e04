"""Endpoints: paths as ASGI applications, from an HTTP call to the gateway and back."""

from __future__ import annotations

import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import unquote

import structlog
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, unbind_contextvars

from groundwire.dialects.dialect import error_body, openai_error
from groundwire.errors import BadRequest, Leaving, RequestError, TooBusy
from groundwire.gateway.forward import parsed
from groundwire.http.exchange import (
    JSON,
    TENANT,
    ClientGone,
    ErrorShape,
    Handler,
    Network,
    ReadAhead,
    cancel_on_disconnect,
    client_address,
    declared_length,
    error_reply,
    forwarded_address,
    read_call,
    send_reply,
)
from groundwire.http.guard import Guard
from groundwire.limits import Capacity, ConcurrencyLimiter, LimiterClosed, LimitReached, Slot
from groundwire.telemetry import RequestRecord, Telemetry
from groundwire.telemetry.requests import CURRENT_REQUEST
from groundwire.upstream.upstream import has_dot_segment, normalised
from groundwire.wire import Call, Reply, header

log = structlog.get_logger("groundwire.server")

QUIET = frozenset({"/healthz", "/readyz", "/metrics", "/assets/{name}"})
"""Routes of probes, scrapes and browsers' assets: not traced, and logged above debug level only if they fail."""


_MAX_READ_AHEAD = 2**16  # bytes of a body that may be read before its request is admitted: what uvicorn buffers anyway


class Admission(ConcurrencyLimiter):
    """Count active requests, and queue those beyond the limits, up to a number and for a time.

    Excess requests are rejected (503 with Retry-After) instead of being delayed, so that traffic never hangs.
    """

    async def admit(self, size: int, messages: ReadAhead) -> Slot:
        """Admit a request with a body of `size` bytes when there is capacity.

        Raises TooBusy, at shutdown Leaving, and ClientGone if the client of a small body disconnects while it waits.
        """
        try:
            if (slot := self.try_acquire(size)) is not None:
                return slot
            if size > _MAX_READ_AHEAD:
                return await self.acquire(size)
            async with cancel_on_disconnect(messages.ahead):
                return await self.acquire(size)
        except LimitReached as reached:
            after = max(1, math.ceil(reached.after))
            raise TooBusy("The proxy is handling too many requests. Please try again.", after=after) from None
        except LimiterClosed:
            message = "The proxy is about to stop. Please try again: another one may answer."
            raise Leaving(message, after=1) from None


@dataclass(frozen=True, slots=True)
class EndpointContext:
    """The context of every endpoint. `max_body` is in bytes, `keepalive` in seconds; without a guard no key is needed.

    `trusted_proxies` report the addresses of clients.
    """

    telemetry: Telemetry
    max_body: int
    keepalive: float
    guard: Guard | None = None
    admission: Admission = field(default_factory=lambda: Admission(Capacity()))
    trusted_proxies: tuple[Network, ...] = ()


class BaseEndpoint(ABC):
    """One path as an ASGI application: authenticates a request, answers it, and logs it in one line."""

    def __init__(self, context: EndpointContext, route: str, shape: ErrorShape = openai_error) -> None:
        self._context = context
        self._route = route
        self._shape = shape
        self._is_quiet = route in QUIET

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Errors are rendered in the shape of its dialect."""
        start = time.perf_counter()
        if self._context.trusted_proxies:
            scope = {**scope, "client": (forwarded_address(scope, self._context.trusted_proxies), 0)}
        outcome: dict[str, int | str] = {"status": "client_gone"}
        telemetry, headers = self._context.telemetry, tuple(scope["headers"])
        with RequestRecord(telemetry, scope["method"], self._route, headers, traced=not self._is_quiet) as request:
            try:
                reply = await self._authenticate(scope, receive, send, request)
                outcome = _outcome(reply)
                request.answered(reply.status)
            except ClientGone:
                request.fail("client_gone")
            except RequestError as error:
                outcome = {"status": "broken_off", "reason": error.operator}
                request.fail("broken_off")
            finally:
                took = round((time.perf_counter() - start) * 1000, 2)
                line = {"method": scope["method"], "route": self._route, "ms": took, **request.log_fields, **outcome}
                log.log(self._level(outcome["status"]), "request", **line)
                if self._context.guard is not None:
                    unbind_contextvars("client")

    def _level(self, status: int | str) -> int:
        """Return the level of a request's line in the log: a warning where an answer failed or broke off."""
        failed = status == "broken_off" or (isinstance(status, int) and status >= 500)
        if self._is_quiet:
            return logging.INFO if failed or (isinstance(status, int) and status >= 400) else logging.DEBUG
        return logging.WARNING if failed else logging.INFO

    async def _authenticate(self, scope: Scope, receive: Receive, send: Send, request: RequestRecord) -> Reply:
        """Authenticate the request and answer it; the client's name is added to logs and spans."""
        if self._context.guard is None:
            return await self._answer(scope, receive, send)
        try:
            authenticated = await self._context.guard.admit(scope["headers"], client_address(scope))
        except RequestError as error:
            return await self._refuse(error, send)
        bind_contextvars(client=authenticated.client)
        request.client(authenticated.client)
        with authenticated:
            scope = {**scope, "headers": authenticated.headers, TENANT: authenticated.tenant}
            return await self._answer(scope, receive, authenticated.with_rate_headers(send))

    @abstractmethod
    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply:
        """Send the reply and return it. Raises RequestError only after the reply has begun."""

    async def _receive(self, scope: Scope, receive: Receive, stack: ExitStack, max_body: int) -> Call:
        """Read the call in a slot, which `stack` releases. Raises TooBusy, Leaving, BodyTooLarge and ClientGone."""
        messages = ReadAhead(receive)
        slot = await self._context.admission.admit(declared_length(scope, max_body), messages)
        stack.callback(slot.release)
        call = await read_call(scope, messages, max_body)
        slot.shrink(len(call.body))
        return call

    async def _refuse(self, error: RequestError, send: Send) -> Reply:
        reply = self._error_reply(error)
        await send_reply(reply, send, self._context.keepalive)
        return reply

    def _error_reply(self, error: RequestError) -> Reply:
        """Return the reply for an error; its text for the operator is added to the log line of the request."""
        if (request := CURRENT_REQUEST.get()) is not None:
            request.log_fields.update(error=type(error).__name__, reason=error.operator)
        return error_reply(error, self._shape)


class Endpoint(BaseEndpoint):
    """A path with a handler for its calls."""

    def __init__(self, context: EndpointContext, route: str, handle: Handler, shape: ErrorShape = openai_error) -> None:
        super().__init__(context, route, shape)
        self._handle = handle

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply:
        with ExitStack() as stack:
            try:
                call = await self._receive(scope, receive, stack, self._context.max_body)
            except RequestError as error:
                return await self._refuse(error, send)
            async with cancel_on_disconnect(receive):
                params = {name: unquote(value) for name, value in scope.get("path_params", {}).items()}
                try:
                    reply = await self._handle(call, params)
                except RequestError as error:
                    reply = self._error_reply(error)
                except Exception:
                    log.exception("request.failed", route=self._route)
                    reply = error_reply(RequestError("The proxy failed to handle the request."), self._shape)
                await send_reply(reply, send, self._context.keepalive)
                return reply


class MountedEndpoint(BaseEndpoint):
    """A path of a library's ASGI application, which parses the body on the event loop.

    The application gets the whole body, of at most `max_body` bytes, after `check` has accepted it. `check` raises
    RequestError for a body that would hold the event loop.
    """

    def __init__(
        self, context: EndpointContext, route: str, app: ASGIApp, max_body: int, check: Callable[[bytes], None]
    ) -> None:
        super().__init__(context, route)
        self._app = app
        self._max_body = max_body
        self._check = check

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply:
        status = 0

        async def record_status(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        with ExitStack() as stack:
            try:
                body = (await self._receive(scope, receive, stack, self._max_body)).body
                await parsed(body, lambda: self._check(body))
                await self._app({**scope, "headers": list(scope["headers"])}, _replay(body, receive), record_status)
            except RequestError as error:
                return await self._refuse(error, send)
        return Reply(status, (), b"")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI channel that yields a body read before, and then further messages."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


def _outcome(reply: Reply) -> dict[str, int | str]:
    """Return the log fields of a reply: its status, and the ids of related records."""
    ids = {name: header(reply.headers, name.encode()) for name in ("x-grounding-id", "x-request-id")}
    found = {name[2:].replace("-", "_"): value.decode("latin-1") for name, value in ids.items() if value is not None}
    return {"status": reply.status, **found}


_ALLOWED = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"


class TextConvertor(PathConvertor):
    """Match the rest of a path, line breaks included, at which Starlette's `path` stops."""

    regex = "(?s:.*)"


register_url_convertor("text", TextConvertor())


class PathFilter:
    """ASGI middleware that refuses TRACE and paths with dot segments.

    Requests are routed by their path as sent, without needless percent-encoding, which is also the forwarded form.
    """

    def __init__(self, app: ASGIApp, context: EndpointContext) -> None:
        self._app = app
        self._bad_path = Endpoint(context, "/..", _refuse_path)
        self._bad_method = Endpoint(context, "TRACE", _refuse_method)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        raw = scope.get("raw_path")
        path = normalised(raw.decode("latin-1") if raw else scope["path"])
        scope = {**scope, "path": path}
        if has_dot_segment(path):
            await self._bad_path(scope, receive, send)
        elif scope["method"] in ("TRACE", "CONNECT"):
            await self._bad_method(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def _refuse_path(_: Call, __: Mapping[str, str]) -> Reply:
    raise BadRequest("The path of the request has a segment '.' or '..', which is not forwarded.")


async def _refuse_method(call: Call, _: Mapping[str, str]) -> Reply:
    body = error_body(f"{call.method} is not allowed here.", "invalid_request_error", None, "method_not_allowed")
    return Reply(405, (*JSON, (b"allow", _ALLOWED)), body)
