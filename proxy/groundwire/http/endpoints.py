"""The handlers of paths: from an HTTP call to the gateway and back."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, unbind_contextvars

from groundwire.dialects.dialect import openai_error
from groundwire.dialects.jsonbytes import dumps
from groundwire.errors import JobsUnavailable, ReportUnavailable, RequestError, StoreUnavailable, UnknownReport
from groundwire.gateway.forward import parsed
from groundwire.http.addresses import Network, client_address, forwarded_address
from groundwire.http.admission import Admission, Slot
from groundwire.http.errors import JSON, ErrorShape, error_reply, unexpected_reply
from groundwire.http.exchange import TENANT, ClientGone, cancel_on_disconnect, declared_length, read_call, send_reply
from groundwire.http.guard import Guard
from groundwire.http.process_state import ProcessState
from groundwire.telemetry import Served, Telemetry
from groundwire.telemetry.served import served
from groundwire.upstream.http import header
from groundwire.wire import Call, Reply

log = structlog.get_logger("groundwire.server")

QUIET = frozenset({"/healthz", "/readyz", "/metrics", "/assets/{name}"})
"""Routes of probes, scrapes and browsers' assets: not traced, and logged above debug level only if they fail."""

Handler = Callable[[Call, Mapping[str, str]], Awaitable[Reply]]
"""Return the reply to a call; the mapping contains its path parameters."""


@dataclass(frozen=True, slots=True)
class EndpointContext:
    """The context of every endpoint. `max_body` is in bytes, `keepalive` in seconds; without a guard no key is needed,
    without admission there is no limit on requests. `trusted_proxies` report the addresses of clients.
    """

    telemetry: Telemetry
    max_body: int
    keepalive: float
    guard: Guard | None = None
    admission: Admission | None = None
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
        with telemetry.server_span(scope["method"], self._route, headers, traced=not self._is_quiet) as request:
            try:
                reply = await self._authenticate(scope, receive, send, request)
                outcome = _outcome(reply)
                request.answered(reply.status)
            except ClientGone:
                request.broke_off("client_gone")
            except RequestError as error:
                outcome = {"status": "broken_off", "reason": error.operator}
                request.broke_off("broken_off")
            finally:
                took = round((time.perf_counter() - start) * 1000, 2)
                line = {"method": scope["method"], "route": self._route, "ms": took, **request.told, **outcome}
                log.log(self._level(outcome["status"]), "request", **line)
                if self._context.guard is not None:
                    unbind_contextvars("client")

    def _level(self, status: int | str) -> int:
        """Return the level of a request's line in the log: a warning where an answer failed or broke off."""
        failed = status == "broken_off" or (isinstance(status, int) and status >= 500)
        if self._is_quiet:
            return logging.INFO if failed or (isinstance(status, int) and status >= 400) else logging.DEBUG
        return logging.WARNING if failed else logging.INFO

    async def _authenticate(self, scope: Scope, receive: Receive, send: Send, request: Served) -> Reply:
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

    async def _refuse(self, error: RequestError, send: Send) -> Reply:
        reply = self._error_reply(error)
        await send_reply(reply, send, self._context.keepalive)
        return reply

    def _error_reply(self, error: RequestError) -> Reply:
        """Return the reply for an error; its text for the operator is added to the log line of the request."""
        if (request := served()) is not None:
            request.told.update(error=type(error).__name__, reason=error.operator)
        return error_reply(error, self._shape)


class Endpoint(BaseEndpoint):
    """A path with a handler for its calls."""

    def __init__(self, context: EndpointContext, route: str, handle: Handler, shape: ErrorShape = openai_error) -> None:
        super().__init__(context, route, shape)
        self._handle = handle

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply:
        slot = Slot(self._context.admission)
        try:
            try:
                call = await self._receive_call(scope, receive, slot)
            except RequestError as error:
                return await self._refuse(error, send)
            async with cancel_on_disconnect(receive):
                params = {name: unquote(value) for name, value in scope.get("path_params", {}).items()}
                reply = await self._reply(call, params)
                await send_reply(reply, send, self._context.keepalive)
                return reply
        finally:
            slot.leave()

    async def _receive_call(self, scope: Scope, receive: Receive, slot: Slot) -> Call:
        """Wait for a slot and read the call. Raises TooBusy, BodyTooLarge and ClientGone."""
        await slot.enter(declared_length(scope, self._context.max_body))
        call = await read_call(scope, receive, self._context.max_body)
        slot.shrink(len(call.body))
        return call

    async def _reply(self, call: Call, params: Mapping[str, str]) -> Reply:
        try:
            return await self._handle(call, params)
        except RequestError as error:
            return self._error_reply(error)
        except Exception:
            log.exception("request.failed", route=self._route)
            return unexpected_reply(self._shape)


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

        slot = Slot(self._context.admission)
        try:
            await slot.enter(declared_length(scope, self._max_body))
            body = (await read_call(scope, receive, self._max_body)).body
            slot.shrink(len(body))
            await parsed(body, lambda: self._check(body))
            await self._app({**scope, "headers": list(scope["headers"])}, _replay(body, receive), record_status)
        except RequestError as error:
            return await self._refuse(error, send)
        finally:
            slot.leave()
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


def fetch_report(find: Callable[[str, str], Awaitable[bytes | None]]) -> Handler:
    """Return a handler that fetches a report by its id for the tenant that owns it; others get not found."""

    async def fetch(call: Call, params: Mapping[str, str]) -> Reply:
        try:
            report = await find(params["id"], call.tenant)
        except (JobsUnavailable, StoreUnavailable) as error:
            message = "Reports that were stored or left for later cannot be reached just now. Please try again."
            raise ReportUnavailable(message, param="id", operator=error.operator) from error
        if report is None:
            raise UnknownReport(f"No report is kept under the id '{params['id']}'", param="id")
        return Reply(200, JSON, report)

    return fetch


async def alive(_: Call, __: Mapping[str, str]) -> Reply:
    """Report that the process is running."""
    return Reply(200, JSON, dumps({"status": "ok"}))


def ready(state: ProcessState, degraded: Callable[[], Iterable[tuple[str, str]]]) -> Handler:
    """Return a handler that reports readiness and degraded parts. It calls no model."""

    async def answer(_: Call, __: Mapping[str, str]) -> Reply:
        reasons = [{"part": part, "reason": reason} for part, reason in (*state.degraded(), *degraded())]
        if state.is_draining:
            return Reply(503, JSON, dumps({"status": "draining", "degraded": reasons}))
        return Reply(200, JSON, dumps({"status": "degraded" if reasons else "ready", "degraded": reasons}))

    return answer
