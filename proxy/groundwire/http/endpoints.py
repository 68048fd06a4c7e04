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

from groundwire.dialects.error import openai_error
from groundwire.dialects.jsonbytes import dumps
from groundwire.errors import JobsUnavailable, ReportUnavailable, RequestError, StoreUnavailable, UnknownReport
from groundwire.gateway.bodies import parsed
from groundwire.http.addresses import Network, address_of, forwarded_address
from groundwire.http.admission import Admission, Slot
from groundwire.http.errors import JSON, ErrorShape, error_reply, unexpected_reply
from groundwire.http.exchange import TENANT, ClientGone, cancelled_when_gone, read_call, send_reply, stated_length
from groundwire.http.guard import Guard
from groundwire.http.process_state import Standing
from groundwire.telemetry import Served, Telemetry
from groundwire.telemetry.served import served
from groundwire.upstream.headers import header
from groundwire.wire import Call, Reply

log = structlog.get_logger("groundwire.server")

QUIET = frozenset({"/healthz", "/readyz", "/metrics", "/assets/{name}"})
"""Routes of probes, scrapes and browsers' assets: not traced, and logged above debug level only if they fail."""

Handler = Callable[[Call, Mapping[str, str]], Awaitable[Reply]]
"""Return the reply to a call; the mapping contains its path parameters."""


@dataclass(frozen=True, slots=True)
class Edge:
    """The context of every endpoint. `max_body` is in bytes, `keepalive` in seconds; without a guard no key is needed,
    without admission there is no limit on requests. `trusted_proxies` report the addresses of clients.
    """

    telemetry: Telemetry
    max_body: int
    keepalive: float
    guard: Guard | None = None
    admission: Admission | None = None
    trusted_proxies: tuple[Network, ...] = ()


class Door(ABC):
    """One path as an ASGI application: authenticates a request, answers it, and logs it in one line."""

    def __init__(self, edge: Edge, route: str, shape: ErrorShape = openai_error) -> None:
        self._edge = edge
        self._route = route
        self._shape = shape
        self._is_quiet = route in QUIET

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Errors are rendered in the shape of its dialect."""
        start = time.perf_counter()
        if self._edge.trusted_proxies:
            scope = {**scope, "client": (forwarded_address(scope, self._edge.trusted_proxies), 0)}
        told: dict[str, int | str] = {"status": "client_gone"}
        telemetry, headers = self._edge.telemetry, tuple(scope["headers"])
        with telemetry.server_span(scope["method"], self._route, headers, traced=not self._is_quiet) as request:
            try:
                reply = await self._guarded(scope, receive, send, request)
                told = _told(reply)
                request.answered(reply.status)
            except ClientGone:
                request.broke_off("client_gone")
            except RequestError as error:
                told = {"status": "broken_off", "reason": error.operator}
                request.broke_off("broken_off")
            finally:
                took = round((time.perf_counter() - start) * 1000, 2)
                line = {"method": scope["method"], "route": self._route, "ms": took, **request.told, **told}
                log.log(self._level(told["status"]), "request", **line)
                if self._edge.guard is not None:
                    unbind_contextvars("client")

    def _level(self, status: int | str) -> int:
        """Return the level of a request's line in the log: a warning where an answer failed or broke off."""
        failed = status == "broken_off" or (isinstance(status, int) and status >= 500)
        if self._is_quiet:
            return logging.INFO if failed or (isinstance(status, int) and status >= 400) else logging.DEBUG
        return logging.WARNING if failed else logging.INFO

    async def _guarded(self, scope: Scope, receive: Receive, send: Send, request: Served) -> Reply:
        """As `_answer`, for those whom the guard lets in, as whom logs and spans know them; others are refused."""
        if self._edge.guard is None:
            return await self._answer(scope, receive, send)
        try:
            visit = await self._edge.guard.admit(scope["headers"], address_of(scope))
        except RequestError as error:
            return await self._refuse(error, send)
        bind_contextvars(client=visit.client)
        request.client(visit.client)
        with visit:
            admitted = {**scope, "headers": visit.headers, TENANT: visit.tenant}
            return await self._answer(admitted, receive, visit.telling(send))

    @abstractmethod
    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply:
        """Send the reply and return it. Raises RequestError only after the reply has begun."""

    async def _refuse(self, error: RequestError, send: Send) -> Reply:
        reply = self._refusal(error)
        await send_reply(reply, send, self._edge.keepalive)
        return reply

    def _refusal(self, error: RequestError) -> Reply:
        """Return the reply for an error; its text for the operator is added to the log line of the request."""
        if (request := served()) is not None:
            request.told.update(error=type(error).__name__, reason=error.operator)
        return error_reply(error, self._shape)


class Endpoint(Door):
    """A path of ours: reads the call, has it handled, sends the reply."""

    def __init__(self, edge: Edge, route: str, handle: Handler, shape: ErrorShape = openai_error) -> None:
        super().__init__(edge, route, shape)
        self._handle = handle

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply:
        slot = Slot(self._edge.admission)
        try:
            try:
                call = await self._received(scope, receive, slot)
            except RequestError as error:
                return await self._refuse(error, send)
            async with cancelled_when_gone(receive):
                params = {name: unquote(value) for name, value in scope.get("path_params", {}).items()}
                reply = await self._reply(call, params)
                await send_reply(reply, send, self._edge.keepalive)
                return reply
        finally:
            slot.leave()

    async def _received(self, scope: Scope, receive: Receive, slot: Slot) -> Call:
        """The call, once there is a slot for it. Raises TooBusy, BodyTooLarge and ClientGone."""
        await slot.enter(stated_length(scope, self._edge.max_body))
        call = await read_call(scope, receive, self._edge.max_body)
        slot.shrink(len(call.body))
        return call

    async def _reply(self, call: Call, params: Mapping[str, str]) -> Reply:
        try:
            return await self._handle(call, params)
        except RequestError as error:
            return self._refusal(error)
        except Exception:
            log.exception("request.failed", route=self._route)
            return unexpected_reply(self._shape)


class Hosted(Door):
    """A path of an ASGI application that is not ours, which parses the body on the event loop.

    It is given the whole body, of at most `max_body` bytes, once `check` has raised no RequestError for it.
    """

    def __init__(self, edge: Edge, route: str, app: ASGIApp, max_body: int, check: Callable[[bytes], None]) -> None:
        super().__init__(edge, route)
        self._app = app
        self._max_body = max_body
        self._check = check

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply:
        status = 0

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        slot = Slot(self._edge.admission)
        try:
            await slot.enter(stated_length(scope, self._max_body))
            body = (await read_call(scope, receive, self._max_body)).body
            slot.shrink(len(body))
            await parsed(body, lambda: self._check(body))
            await self._app({**scope, "headers": list(scope["headers"])}, _received_again(body, receive), noting)
        except RequestError as error:
            return await self._refuse(error, send)
        finally:
            slot.leave()
        return Reply(status, (), b"")


def _received_again(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI channel that yields a body read before, and then further messages."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _told(reply: Reply) -> dict[str, int | str]:
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


def ready(standing: Standing, degraded: Callable[[], Iterable[tuple[str, str]]]) -> Handler:
    """Return a handler that reports readiness and degraded parts. It calls no model."""

    async def answer(_: Call, __: Mapping[str, str]) -> Reply:
        reasons = [{"part": part, "reason": reason} for part, reason in (*standing.degraded(), *degraded())]
        if standing.is_draining:
            return Reply(503, JSON, dumps({"status": "draining", "degraded": reasons}))
        return Reply(200, JSON, dumps({"status": "degraded" if reasons else "ready", "degraded": reasons}))

    return answer
